// Package adminapi (no public API) is the side of probes and operators, on net/http: readiness.go decides
// whether the app may rely on this process, health.go answers the probes, admin.go has the
// routes of the admin port with its own view of a top, status.go answers /status, whose query
// it reads; dependency.go follows how the services that the process calls answer it.
//
// Entry: [New] for the admin port, [Health] for the health port; both are served by internal/httpserve.
//
// Words: ready is latched, only [Readiness.Stop] takes it back; a board has settled when it is open or was given up to
// Redis; a probe is a kubelet's request; a dependency is a service that the process calls; a section is a part of
// /status that another part of the process adds; behind is a board that is not open yet.
package adminapi
