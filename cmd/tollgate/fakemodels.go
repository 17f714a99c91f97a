package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tollgate/app/apptest/fakellm"
)

// fakeFlags set up the pretended model server.
type fakeFlags struct {
	seed              uint64
	latency, mix      string
	requests, tokens  int64
	shortest, longest time.Duration
	shares            []fakellm.Share
}

func (f *fakeFlags) register(set *flag.FlagSet) {
	set.Uint64Var(&f.seed, "seed", 1, "`number` that all answers and mishaps follow from")
	set.StringVar(&f.latency, "latency", "0s", "how long good answers take: a `time` such as 300ms, or two such as 300ms-2s")
	set.StringVar(&f.mix, "mix", "", "of a thousand requests, how many meet what: such as `429=20,529=10,cut=5,bad-json=5`")
	set.Int64Var(&f.requests, "requests-per-minute", 0, "`limit` for each key and model; 0 for none")
	set.Int64Var(&f.tokens, "tokens-per-minute", 0, "`limit` for each key and model; 0 for none")
}

// check reads what the flag package cannot.
func (f *fakeFlags) check() error {
	first, second, two := strings.Cut(f.latency, "-")
	var err error
	if f.shortest, err = time.ParseDuration(first); err != nil || f.shortest < 0 {
		return fmt.Errorf("--latency should be a time such as 300ms, or two such as 300ms-2s, and is %q", f.latency)
	}
	f.longest = f.shortest
	if two {
		if f.longest, err = time.ParseDuration(second); err != nil || f.longest < f.shortest {
			return fmt.Errorf("--latency should be a time such as 300ms, or two such as 300ms-2s, and is %q", f.latency)
		}
	}
	if f.requests < 0 || f.tokens < 0 {
		return fmt.Errorf("a limit per minute should be 0 or more")
	}
	f.shares, err = readMix(f.mix)
	return err
}

// readMix reads how many of a thousand requests meet which mishap.
func readMix(text string) ([]fakellm.Share, error) {
	var shares []fakellm.Share
	sum := 0
	for _, part := range list(text) {
		name, count, _ := strings.Cut(part, "=")
		turn, known := fakellm.Named(name)
		n, err := strconv.Atoi(count)
		if !known {
			return nil, fmt.Errorf("--mix: there is no mishap %q; choose of %s", name, strings.Join(fakellm.Names(), ", "))
		}
		if sum += n; err != nil || n < 0 || sum > 1000 {
			return nil, fmt.Errorf("--mix: %q should say how many of a thousand requests, and all together at most a thousand", part)
		}
		shares = append(shares, fakellm.Share{PerMille: n, Turn: turn})
	}
	return shares, nil
}

// fakeModels serves pretended models in the formats of OpenAI, Anthropic and Google, for
// load runs: nothing is paid, and what goes wrong goes wrong on order.
func fakeModels(ctx context.Context, p *program) error {
	f := p.flags.fake
	server := fakellm.New(f.seed)
	server.Keep(0)
	server.Latency(f.shortest, f.longest)
	server.Mix(f.shares...)
	if f.requests > 0 || f.tokens > 0 {
		server.Limit(fakellm.Limit{Requests: f.requests, Tokens: f.tokens})
	}
	socket, err := bind(p.flags.addr)
	if err != nil {
		return err
	}
	l := listen(socket, server, newLog(p.errs, false))
	fmt.Fprintf(p.out, "Pretended models are ready. Set OPENAI_BASE_URL=http://%[1]s/v1, ANTHROPIC_BASE_URL=http://%[1]s or\n"+
		"GEMINI_BASE_URL=http://%[1]s, and TOLLGATE_OUTBOUND_ALLOW=%[1]s\n", socket.Addr())
	broken := l.wait(ctx)
	server.Close()
	if met := server.Metered(); met.Taken > 0 {
		fmt.Fprintf(p.out, "%d requests taken with %d tokens, %d refused by the limit\n", met.Taken, met.Tokens, met.Refused)
	}
	if err := l.stop(time.Second); err != nil {
		return err
	}
	return broken
}
