package rpc

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
)

func newDurations() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rankcache_rpc_duration_seconds",
		Help:    "Time from a decoded request of Connect or gRPC until its answer is ready to be encoded, by method and code (ok, or the code of the error). Watch is not among them.",
		Buckets: []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}}, []string{"method", "code"})
}

// measured measures requests that have one answer.
func measured(by *prometheus.HistogramVec) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			begun := time.Now()
			answer, err := next(ctx, r)
			code := "ok"
			if err != nil {
				code = connect.CodeOf(err).String()
			}
			method := r.Spec().Procedure[strings.LastIndexByte(r.Spec().Procedure, '/')+1:]
			by.WithLabelValues(method, code).Observe(time.Since(begun).Seconds())
			return answer, err
		}
	}
}
