package localdb

import (
	"strconv"
	"strings"
)

// pidsInListing finds our processes in lines of pid, state and command. The server
// shows its arguments; its sessions show a title that begins with the cluster's
// name. Zombies (state Z) are left out.
func pidsInListing(listing, data, cluster string) []int {
	var pids []int
	for line := range strings.Lines(listing) {
		pidText, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		state, command, _ := strings.Cut(strings.TrimSpace(rest), " ")
		pid, err := strconv.Atoi(pidText)
		if err != nil || strings.HasPrefix(state, "Z") {
			continue
		}
		server := strings.Contains(command, "postgres -D "+data+" -p ")
		session := strings.Contains(command, "postgres: "+cluster+": ")
		if server || session {
			pids = append(pids, pid)
		}
	}
	return pids
}
