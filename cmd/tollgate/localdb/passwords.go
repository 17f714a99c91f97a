package localdb

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// passwords are the two logins of one database. They are made once, before the
// data, and kept in a file that only our own user can read.
type passwords struct {
	Super string `json:"super"`
	Owner string `json:"owner"`
}

func newPassword() string {
	var raw [24]byte
	_, _ = rand.Read(raw[:]) // never fails: the program stops instead
	return hex.EncodeToString(raw[:])
}

// loadPasswords reads the file. Where there is none and no data either, it makes
// one: passwords must be on disk before the data that only they can open.
func loadPasswords(path string, dataExists bool) (passwords, error) {
	raw, err := readSmall(path, 4096)
	if errors.Is(err, fs.ErrNotExist) {
		if dataExists {
			return passwords{}, fmt.Errorf("the passwords file %s is missing, without which the data beside it cannot be opened: put it back, or choose another folder with --data", path)
		}
		p := passwords{Super: newPassword(), Owner: newPassword()}
		return p, p.save(path)
	}
	if err != nil {
		return passwords{}, fmt.Errorf("the passwords file cannot be read (%w): run as the user it belongs to, or choose another folder with --data", err)
	}
	var p passwords
	if err := json.Unmarshal(raw, &p); err != nil || p.Super == "" || p.Owner == "" {
		return passwords{}, fmt.Errorf("the passwords file %s is damaged: put a good copy back, or choose another folder with --data", path)
	}
	return p, nil
}

// save writes beside the final name and renames, so that a crash leaves no half.
func (p passwords) save(path string) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("write passwords: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".passwords-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write passwords: %w", err)
	}
	_, errWrite := f.Write(append(raw, '\n'))
	if err := cmp.Or(errWrite, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write passwords: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write passwords: %w", err)
	}
	return nil
}

// readSmall reads a file that ought to be short and refuses to read a long one.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("longer than expected")}
	}
	return raw, nil
}
