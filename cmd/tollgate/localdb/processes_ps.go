//go:build unix && !linux

package localdb

import (
	"fmt"
	"os/exec"
)

// processes lists the living processes of the data folder, from the listing that
// every Unix can print.
func (h *home) processes() ([]int, error) {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,stat=,command=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return pidsInListing(string(out), h.data(), h.clusterName()), nil
}
