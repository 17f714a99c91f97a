package web

// Where workspaces and review links begin.
const (
	workspacePath = "/w/:tenant"
	linkPath      = "/r/:token"
)

// routes is the whole map, by resource.
func (s *Server) routes() []route {
	return []route{
		// For machines that watch over this one, and assets.
		get("/healthz", "health.alive", anybody, s.alive),
		get("/readyz", "health.ready", anybody, s.ready),
		get("/static/*", "static", anybody, s.asset),

		// The door.
		get("/", "front", anybody, s.front),
	}
}
