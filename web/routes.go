package web

import "tollgate/tenants"

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
		get("/signin", "signin.show", anybody, s.signInPage),
		post("/signin", "signin.ask_code", anybody, s.askCode),
		get("/signin/code", "signin.show_code", anybody, s.codePage),
		post("/signin/code", "signin.take_code", anybody, s.takeCode),
		post("/signin/as", "signin.continue_as", onlyLocal, s.continueAs),
		post("/signout", "signout", anybody, s.leave),
		get("/workspaces", "workspaces.show", signedIn, s.workspacesPage),
		post("/workspaces", "workspaces.make", signedIn, s.makeWorkspace),

		// Inside a workspace.
		get(workspacePath, "home", may(tenants.Read), s.home),
		get(workspacePath+"/*", "lost", may(tenants.Read), s.nothingHere),

		// Templates.
		post(workspacePath+"/templates/:slug/try", "template.try", may(tenants.BuildPipelines), s.tryTemplate),

		// Mail that would have gone out.
		get("/mail", "mail.list", onlyLocal, s.mailbox),
		get("/mail/:id", "mail.show", onlyLocal, s.mailPage),
	}
}
