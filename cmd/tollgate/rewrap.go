package main

import (
	"context"
	"errors"
	"fmt"

	"tollgate/tenants"
)

// rewrap seals anew, under TOLLGATE_SECRET, what the secrets before it sealed. It may run
// while the installation serves, once all processes have both variables.
func rewrap(ctx context.Context, p *program) error {
	if p.config.DatabaseURL == "" || p.config.Secret == nil || p.config.EarlierSecrets == nil {
		return errors.New("DATABASE_URL, TOLLGATE_SECRET and TOLLGATE_SECRET_OLD must be set, the last to what TOLLGATE_SECRET was before")
	}
	secret, err := tenants.NewSecret(p.config.Secret)
	if err != nil {
		return err
	}
	earlier, err := earlierSecrets(p.config)
	if err != nil {
		return err
	}
	vault, err := tenants.NewVault(secret, earlier...)
	if err != nil {
		return err
	}
	db, err := tenants.Open(ctx, tenants.Config{URL: p.config.DatabaseURL, SystemURL: p.config.SystemDatabaseURL})
	if err != nil {
		return err
	}
	defer db.Close()
	done, err := tenants.Rewrap(ctx, db, vault)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%d sealed values were sealed anew\n", done.Done)
	if done.Unopened > 0 {
		return fmt.Errorf("%d sealed values were sealed under a secret that TOLLGATE_SECRET_OLD does not name; they are left as they are", done.Unopened)
	}
	return nil
}

func earlierSecrets(c Config) ([]tenants.Secret, error) {
	var earlier []tenants.Secret
	for _, key := range c.EarlierSecrets {
		secret, err := tenants.NewSecret(key)
		if err != nil {
			return nil, fmt.Errorf("TOLLGATE_SECRET_OLD: %w", err)
		}
		earlier = append(earlier, secret)
	}
	return earlier, nil
}
