// Package check holds the tests of deploy/k8s. It is a module of its own, so that
// Prometheus, kustomize and a JSON schema validator are no business of the rest.
//
// build_test.go builds every base, overlay and component as kubectl apply -k
// does. schema_test.go holds what comes out against the schemas of several
// Kubernetes versions and of the Prometheus operator. shape_test.go asks of it
// what no schema does, such as which container may write where; sidecar_test.go,
// whether every labelled workload has its sidecar. With -dir DIR and
// -run 'EveryLabel|LockedUp' it checks an overlay of your own. alerts_test.go
// lets every alert fire, and not fire, on series written down in
// testdata/alerts.yaml; dashboard_test.go reads the dashboard's queries.
// compose_test.go loads compose.yaml as Docker does.
//
// That the flags, probes and metrics named there exist is checked beside the
// binary, in internal/app.
package check
