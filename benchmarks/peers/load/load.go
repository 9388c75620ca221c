// Package load is what the two load generators share: clients that take turns until a bound is
// reached, and figures of what they saw.
package load

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// MostRequests bounds every run, whatever it is asked for: its samples are kept in memory.
const MostRequests = 2_000_000

// MostSeconds bounds every run in time.
const MostSeconds = 600.0

// Failures after which a run with nothing else gives up: the rest would be the same.
const hopeless = 20

// Figures is what is printed, as JSON.
type Figures struct {
	Requests  int            `json:"requests"`
	Failures  map[string]int `json:"failures"`
	Seconds   float64        `json:"seconds"`
	PerSecond float64        `json:"per_second"`
	MeanMS    float64        `json:"mean_ms"`
	P50MS     float64        `json:"p50_ms"`
	P90MS     float64        `json:"p90_ms"`
	P99MS     float64        `json:"p99_ms"`
	MaxMS     float64        `json:"max_ms"`
}

// Bounds of a run; the first that is reached ends it.
type Bounds struct {
	Clients  int
	Requests int
	Seconds  float64
}

// Check says what is wrong with them.
func (b Bounds) Check() error {
	switch {
	case b.Clients < 1 || b.Clients > 256:
		return fmt.Errorf("-clients is %d: give 1 to 256", b.Clients)
	case b.Requests < 1 || b.Requests > MostRequests:
		return fmt.Errorf("-requests is %d: give 1 to %d", b.Requests, MostRequests)
	case !(b.Seconds > 0 && b.Seconds <= MostSeconds):
		return fmt.Errorf("-seconds is %v: give more than 0 and at most %v", b.Seconds, MostSeconds)
	}
	return nil
}

// Run has each client call over and over, the next as soon as the last is done (a closed loop).
//
// makeCall is called once for each client, in that client's goroutine; the call that it returns
// takes the request's number.
func Run(bounds Bounds, makeCall func(client int) func(number int) error) *Samples {
	var (
		taken    atomic.Int64
		failed   atomic.Int64
		answered atomic.Int64
		mutex    sync.Mutex
		wait     sync.WaitGroup
	)
	samples := &Samples{Failures: map[string]int{}}
	begin := time.Now()
	deadline := begin.Add(time.Duration(bounds.Seconds * float64(time.Second)))
	for client := range bounds.Clients {
		wait.Go(func() {
			call := makeCall(client)
			mine := make([]time.Duration, 0, 4096)
			for time.Now().Before(deadline) {
				if failed.Load() >= hopeless && answered.Load() == 0 {
					break
				}
				number := int(taken.Add(1)) - 1
				if number >= bounds.Requests {
					break
				}
				start := time.Now()
				err := call(number)
				if err != nil {
					failed.Add(1)
					mutex.Lock()
					samples.Failures[err.Error()]++
					mutex.Unlock()
					continue
				}
				mine = append(mine, time.Since(start))
				answered.Add(1)
			}
			mutex.Lock()
			samples.Durations = append(samples.Durations, mine...)
			mutex.Unlock()
		})
	}
	wait.Wait()
	samples.Took = time.Since(begin)
	return samples
}

// Samples is what a run saw.
type Samples struct {
	Durations []time.Duration
	Failures  map[string]int
	Took      time.Duration
}

// Add puts another run's to them.
func (s *Samples) Add(other *Samples) {
	s.Durations = append(s.Durations, other.Durations...)
	s.Took += other.Took
	for failure, count := range other.Failures {
		s.Failures[failure] += count
	}
}

// Figures are made of the samples, which are sorted by that.
func (s *Samples) Figures() Figures {
	samples, took := s.Durations, s.Took
	slices.Sort(samples)
	figures := Figures{Requests: len(samples), Failures: s.Failures, Seconds: took.Seconds()}
	if len(samples) == 0 {
		return figures
	}
	var sum time.Duration
	for _, sample := range samples {
		sum += sample
	}
	figures.PerSecond = float64(len(samples)) / took.Seconds()
	figures.MeanMS = milliseconds(sum) / float64(len(samples))
	figures.P50MS = quantile(samples, 0.50)
	figures.P90MS = quantile(samples, 0.90)
	figures.P99MS = quantile(samples, 0.99)
	figures.MaxMS = milliseconds(samples[len(samples)-1])
	return figures
}

// quantile by the nearest rank, of sorted samples.
func quantile(sorted []time.Duration, q float64) float64 {
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return milliseconds(sorted[max(rank, 0)])
}

func milliseconds(duration time.Duration) float64 {
	return float64(duration) / float64(time.Millisecond)
}

// TrustOnly is a TLS configuration that trusts the authorities of one PEM file.
func TrustOnly(file string) (*tls.Config, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New(file + " holds no certificate in PEM")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
