package review

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTally(t *testing.T) {
	t.Parallel()
	const a, e, s, r = Approve, ApproveWithEdits, SendBack, Reject
	anyone, all, two := Policy{}, Policy{Rule: RuleAll}, Policy{Rule: RuleN, N: 2}
	tests := map[string]struct {
		policy Policy
		seats  int
		given  []Verdict
		want   Outcome
	}{
		"any: nobody yet":              {anyone, 3, nil, ""},
		"any: first approves":          {anyone, 3, []Verdict{a}, OutcomeApproved},
		"any: first edits":             {anyone, 3, []Verdict{e}, OutcomeApproved},
		"any: first rejects":           {anyone, 3, []Verdict{r}, OutcomeRejected},
		"any: first sends back":        {anyone, 3, []Verdict{s}, OutcomeSentBack},
		"any by name":                  {Policy{Rule: RuleAny}, 1, []Verdict{a}, OutcomeApproved},
		"all: nobody yet":              {all, 3, nil, ""},
		"all: two of three":            {all, 3, []Verdict{a, a}, ""},
		"all: three of three":          {all, 3, []Verdict{a, a, a}, OutcomeApproved},
		"all: the last rejects":        {all, 3, []Verdict{a, a, r}, OutcomeRejected},
		"all: the first rejects":       {all, 3, []Verdict{r}, OutcomeRejected},
		"all: one sends back":          {all, 3, []Verdict{a, s}, OutcomeSentBack},
		"all of one":                   {all, 1, []Verdict{a}, OutcomeApproved},
		"all of nobody never passes":   {all, 0, nil, ""},
		"n: one of two":                {two, 3, []Verdict{a}, ""},
		"n: two":                       {two, 3, []Verdict{a, e}, OutcomeApproved},
		"n: one each way":              {two, 3, []Verdict{a, r}, OutcomeRejected},
		"n: rejection before approval": {two, 3, []Verdict{r, a, a}, OutcomeRejected},
		"n: one of one":                {Policy{Rule: RuleN, N: 1}, 3, []Verdict{a}, OutcomeApproved},
		"n: none never passes":         {Policy{Rule: RuleN}, 3, nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, tally(test.policy, test.seats, test.given))
		})
	}
}

// Whatever the order of approvals, a review ends with exactly as many as it needs.
func TestTallyNeedsExactlyAsManyAsSaid(t *testing.T) {
	t.Parallel()
	for seats := 1; seats <= 6; seats++ {
		for n := 1; n <= seats; n++ {
			policy := Policy{Rule: RuleN, N: n}
			var given []Verdict
			for len(given) < n-1 {
				given = append(given, Approve)
			}
			require.Empty(t, tally(policy, seats, given))
			require.Equal(t, OutcomeApproved, tally(policy, seats, append(given, Approve)))
			require.Equal(t, OutcomeRejected, tally(policy, seats, append(given, Reject)))
		}
	}
}

func TestProofServesWhatIsAskedOrLess(t *testing.T) {
	t.Parallel()
	order := []Proof{ProofLink, ProofLinkCode, ProofSignIn}
	for i, have := range order {
		for j, asked := range order {
			require.Equal(t, i >= j, have.serves(asked), "%s for %s", have, asked)
		}
	}
	require.False(t, Proof("").serves(ProofLink))
}
