package web

import (
	"net/http"

	"tollgate/static"
)

// alive tells that the process answers. It asks nobody else, so that a slow database
// does not get healthy processes restarted.
func (s *Server) alive(v *visit) error { return v.String(http.StatusOK, "ok\n") }

// ready tells that the process can do its work: the database answers, takes changes, and
// has the shape that this build needs.
func (s *Server) ready(v *visit) error {
	if err := s.DB.Ping(v.ctx()); err != nil {
		s.Log.WarnContext(v.ctx(), "not ready", "error", err)
		return v.String(http.StatusServiceUnavailable, "the database does not answer, or takes no changes\n")
	}
	if s.Outdated != nil {
		outdated, err := s.Outdated(v.ctx())
		if err != nil {
			s.Log.WarnContext(v.ctx(), "not ready", "error", err)
			return v.String(http.StatusServiceUnavailable, "the migrations could not be checked\n")
		}
		if outdated {
			return v.String(http.StatusServiceUnavailable, "the database waits for migrations\n")
		}
	}
	return v.String(http.StatusOK, "ready\n")
}

// asset serves what browsers load beside a page. Its answers may be kept.
func (s *Server) asset(v *visit) error {
	v.Response().Header().Del("Cache-Control")
	static.Handler().ServeHTTP(v.Response(), v.Request())
	return nil
}
