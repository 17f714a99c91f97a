package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tollgate/tenants"
)

// asker makes asks with readable names: tenant and slice are single numbers.
func asker(free int, tenant, slice byte, room int) ask {
	return ask{Free: free, Tenant: tenants.ID{tenant}, Slice: SliceID{slice}, Room: room, Fence: 1, Semantics: 1}
}

func slicesOf(asks []ask) string {
	var out []byte
	for _, a := range asks {
		out = append(out, 'a'+a.Slice[0])
	}
	return string(out)
}

// Tenants take turns, whoever was not served for longest first; a quota and a lack of
// room are told apart.
func TestAllotGivesEachTenantItsTurn(t *testing.T) {
	t.Parallel()
	asks := []ask{asker(4, 1, 0, 9), asker(4, 1, 1, 9), asker(4, 1, 2, 9), asker(4, 2, 3, 1), asker(4, 2, 4, 1), asker(4, 3, 5, 9), asker(4, 3, 6, 9)}
	given := allot(asks)
	require.Equal(t, "adfb", slicesOf(given.chosen))
	require.Equal(t, "gc", slicesOf(given.wanting))
	require.Equal(t, "e", slicesOf(given.held))
	require.Equal(t, []string{"slices_1"}, given.queues())
	require.Empty(t, allot(nil).chosen)
}

// What was woken goes before its window's other slices; what the window has no room for
// is set aside, and stands in the way of nobody.
func TestAllotKeepsToWindows(t *testing.T) {
	t.Parallel()
	inWindow := func(slice byte, woken, crowded bool) ask {
		a := asker(9, 1, slice, 3)
		a.Window, a.WindowRoom, a.Woken, a.Crowded = StepRunID{1}, 1, woken, crowded
		return a
	}
	given := allot([]ask{inWindow(0, false, false), inWindow(1, false, true), inWindow(2, true, true), asker(9, 1, 3, 3), asker(9, 1, 4, 3), asker(9, 1, 5, 3)})
	require.Equal(t, "cde", slicesOf(given.chosen))
	require.Equal(t, "ab", slicesOf(given.inside))
	require.Equal(t, "a", slicesOf(given.crowded), "only what was not set aside before")
	require.Equal(t, "f", slicesOf(given.held))
}

// Whatever asks: no limit is passed, nobody is served twice, every ask is accounted for,
// and no slot stays free while somebody could have it.
func TestAllotKeepsAllLimits(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		asks := randomAsks(rand.New(rand.NewPCG(seed, 1)))
		given := allot(asks)
		perTenant, perWindow, seen := map[tenants.ID]int{}, map[StepRunID]int{}, map[SliceID]bool{}
		for _, a := range given.chosen {
			perTenant[a.Tenant]++
			require.LessOrEqual(t, perTenant[a.Tenant], a.Room, "seed %d", seed)
			if !a.Window.IsZero() {
				perWindow[a.Window]++
				require.LessOrEqual(t, perWindow[a.Window], a.WindowRoom, "seed %d", seed)
			}
		}
		for _, a := range slices.Concat(given.chosen, given.wanting, given.held, given.inside) {
			require.False(t, seen[a.Slice], "seed %d", seed)
			seen[a.Slice] = true
		}
		require.Len(t, seen, len(asks), "seed %d", seed)
		if len(asks) > 0 {
			require.LessOrEqual(t, len(given.chosen), asks[0].Free, "seed %d", seed)
			require.True(t, len(given.wanting) == 0 || len(given.chosen) == asks[0].Free, "seed %d", seed)
		}
		least, most := 1000, 0
		for _, a := range given.wanting {
			least = min(least, perTenant[a.Tenant])
		}
		for _, n := range perTenant {
			most = max(most, n)
		}
		require.LessOrEqual(t, most, least+1, "seed %d: one tenant got two more than one that waits", seed)
	}
}

func randomAsks(random *rand.Rand) []ask {
	var asks []ask
	free := random.IntN(8)
	for slice := range random.IntN(30) {
		tenant := byte(random.IntN(4))
		a := asker(free, tenant, byte(slice), int(tenant)*2)
		if window := byte(random.IntN(3)); window > 0 {
			a.Window, a.WindowRoom = StepRunID{tenant, window}, int(window)
			a.Woken, a.Crowded = random.IntN(2) == 0, random.IntN(2) == 0
		}
		asks = append(asks, a)
	}
	slices.SortStableFunc(asks, func(x, y ask) int { return cmp.Compare(x.Tenant[0], y.Tenant[0]) })
	return asks
}

// Each who waits makes one running slice give way: at once for a tenant with fewer
// slots, after its share for everybody else, and at once in a window.
func TestWhoWaitsMakesOneSliceGiveWay(t *testing.T) {
	t.Parallel()
	mine, other, window := tenants.ID{1}, tenants.ID{2}, StepRunID{1}
	fresh, used := share{tenant: mine, steps: 1}, share{tenant: mine, steps: maxSteps}
	within := share{tenant: mine, window: window, steps: 1}
	asks := allotment{wanting: []ask{{Tenant: other}}}
	runs := func(ours, theirs, queued int) taken {
		return taken{slots: ours + theirs, running: map[tenants.ID]int{mine: ours, other: theirs}, queued: map[tenants.ID]int{other: queued}}
	}
	idle := runs(8, 0, 1)
	idle.slots++
	for name, c := range map[string]struct {
		left       allotment
		held       taken
		share      share
		first, two bool
	}{
		"nobody waits":                     {allotment{}, runs(8, 0, 0), used, false, false},
		"a tenant with fewer slots":        {asks, runs(8, 6, 0), fresh, true, false},
		"one with as many, too early":      {asks, runs(8, 7, 0), fresh, false, false},
		"one with more, too early":         {asks, runs(1, 9, 0), fresh, false, false},
		"one with more, after its share":   {asks, runs(1, 9, 0), used, true, false},
		"one that waits for a worker":      {allotment{}, runs(8, 0, 1), fresh, true, false},
		"one whose worker is free":         {allotment{}, idle, used, false, false},
		"its own, too early":               {allotment{wanting: []ask{{Tenant: mine}}}, runs(8, 0, 0), fresh, false, false},
		"its own, after its share":         {allotment{wanting: []ask{{Tenant: mine}, {Tenant: mine}}}, runs(8, 0, 0), used, true, true},
		"another's quota is not its cause": {allotment{held: []ask{{Tenant: other}}}, runs(8, 0, 0), used, false, false},
		"its own quota":                    {allotment{held: []ask{{Tenant: mine}}}, runs(8, 0, 0), used, true, false},
		"its window":                       {allotment{inside: []ask{{Tenant: mine, Window: window}}}, runs(8, 0, 0), within, true, false},
		"another window":                   {allotment{inside: []ask{{Tenant: mine, Window: window}}}, runs(8, 0, 0), used, false, false},
	} {
		w := newWaiters(c.left, c.held)
		require.Equal(t, c.first, w.giveWay(c.share), name)
		require.Equal(t, c.two, w.giveWay(c.share), name)
	}
}
