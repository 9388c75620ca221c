// Command loadgen sends admission reviews to a webhook over TLS, as an API server does, and prints
// what it saw as JSON.
//
//	loadgen -url https://127.0.0.1:9443/inject -ca ca.crt -body pod.json -clients 1 -seconds 5
//
// Connections are kept and speak HTTP/1.1, as the API server's to its webhooks do. Each client
// sends its next review when the last was answered. Each review has a uid of its own. It talks to
// loopback only, and ends by itself.
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"shield-operator.invalid/peers/load"
)

// Replaced in each review by one of its own, of the same length.
const uid = "705ab4f5-6393-11e8-b7cc-42010a800002"

// How long one review may take: the API server gives a webhook 30 s at the most.
const patience = 30 * time.Second

type report struct {
	load.Figures
	Patched int64 `json:"patched"`
	Bytes   int   `json:"review_bytes"`
}

func main() {
	address := flag.String("url", "", "the webhook's `URL`, on loopback")
	authority := flag.String("ca", "", "PEM `file` of the authority that it is trusted by")
	body := flag.String("body", "", "JSON `file` of the pod, or of a whole AdmissionReview")
	namespace := flag.String("namespace", "shop", "the pod's `namespace`s, separated by commas: taken in turn")
	var bounds load.Bounds
	flag.IntVar(&bounds.Clients, "clients", 1, "how many at once, each with a connection of its own")
	flag.IntVar(&bounds.Requests, "requests", load.MostRequests, "end after so many")
	flag.Float64Var(&bounds.Seconds, "seconds", 5, "end after so many seconds")
	flag.Parse()
	found, err := run(*address, *authority, *body, *namespace, bounds)
	if err != nil {
		fmt.Fprintln(os.Stderr, "loadgen:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		os.Exit(1)
	}
}

func run(address, authority, body, namespaces string, bounds load.Bounds) (report, error) {
	if err := bounds.Check(); err != nil {
		return report{}, err
	}
	target, err := url.Parse(address)
	if err != nil || target.Scheme != "https" {
		return report{}, fmt.Errorf("-url is %q: give an https URL", address)
	}
	if ip := net.ParseIP(target.Hostname()); target.Hostname() != "localhost" && !ip.IsLoopback() {
		return report{}, fmt.Errorf("-url is %q: only loopback is put under load", address)
	}
	trust, err := load.TrustOnly(authority)
	if err != nil {
		return report{}, err
	}
	content, err := os.ReadFile(body)
	if err != nil {
		return report{}, err
	}
	var templates [][]byte
	for namespace := range strings.SplitSeq(namespaces, ",") {
		review, err := reviewOf(content, namespace)
		if err != nil {
			return report{}, fmt.Errorf("%s: %w", body, err)
		}
		templates = append(templates, review)
	}
	trust.NextProtos = []string{"http/1.1"}
	client := &http.Client{Timeout: patience, Transport: transport(trust, bounds.Clients)}
	var patched atomic.Int64
	samples := load.Run(bounds, func(int) func(int) error {
		mine := make([][]byte, len(templates))
		var answer bytes.Buffer
		return func(number int) error {
			which := number % len(templates)
			if mine[which] == nil { // its own copy, for the uid
				mine[which] = slices.Clone(templates[which])
			}
			return ask(client, address, mine[which], &answer, &patched)
		}
	})
	return report{samples.Figures(), patched.Load(), len(templates[0])}, nil
}

func transport(trust *tls.Config, clients int) *http.Transport {
	return &http.Transport{
		TLSClientConfig:     trust,
		MaxIdleConnsPerHost: clients,
		DisableCompression:  true,
		WriteBufferSize:     64 << 10,
		ReadBufferSize:      64 << 10,
	}
}

func ask(
	client *http.Client, address string, review []byte, answer *bytes.Buffer, patched *atomic.Int64,
) error {
	mark := bytes.Index(review, []byte(`"uid":"`)) + len(`"uid":"`)
	fresh(review[mark : mark+len(uid)])
	response, err := client.Post(address, "application/json", bytes.NewReader(review))
	if err != nil {
		return errors.New("no answer: " + reason(err))
	}
	defer response.Body.Close()
	answer.Reset()
	if _, err := io.Copy(answer, response.Body); err != nil {
		return errors.New("no whole answer: " + reason(err))
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d", response.StatusCode)
	}
	if !bytes.Contains(answer.Bytes(), review[mark:mark+len(uid)]) {
		return errors.New("an answer without the review's uid")
	}
	if bytes.Contains(answer.Bytes(), []byte(`"patch"`)) {
		patched.Add(1)
	}
	return nil
}

// reason leaves out addresses, so that the same failures count together.
func reason(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// fresh writes a new uid, in its usual form.
func fresh(place []byte) {
	const digits = "0123456789abcdef"
	var random [len(uid)]byte
	_, _ = rand.Read(random[:]) // never fails: https://pkg.go.dev/crypto/rand#Read
	for n := range place {
		if uid[n] != '-' {
			place[n] = digits[random[n]%16]
		}
	}
}

// reviewOf makes the review that an API server sends for the creation of a pod. A review is taken
// as it is.
func reviewOf(content []byte, namespace string) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, err
	}
	switch object["kind"] {
	case "AdmissionReview":
		request, _ := object["request"].(map[string]any)
		if request == nil {
			return nil, errors.New("the AdmissionReview has no request")
		}
		delete(request, "uid")
		return withUID(object["apiVersion"], request)
	case "Pod":
	default:
		return nil, errors.New("its kind is neither Pod nor AdmissionReview")
	}
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		return nil, errors.New("the pod has no metadata")
	}
	metadata["namespace"] = namespace
	return withUID("admission.k8s.io/v1", map[string]any{
		"kind":            map[string]any{"group": "", "version": "v1", "kind": "Pod"},
		"resource":        map[string]any{"group": "", "version": "v1", "resource": "pods"},
		"requestKind":     map[string]any{"group": "", "version": "v1", "kind": "Pod"},
		"requestResource": map[string]any{"group": "", "version": "v1", "resource": "pods"},
		"namespace":       namespace,
		"operation":       "CREATE",
		"userInfo": map[string]any{
			"username": "system:serviceaccount:kube-system:replicaset-controller",
			"uid":      uid,
			"groups": []string{
				"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated",
			},
		},
		"object":    object,
		"oldObject": nil,
		"dryRun":    false,
		"options":   map[string]any{"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
	})
}

// withUID puts the review's uid where the first one stands, whatever the pod holds.
func withUID(version any, request map[string]any) ([]byte, error) {
	rest, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf(
		`{"kind":"AdmissionReview","apiVersion":%q,"request":{"uid":"%s",`, version, uid,
	)
	return append(append([]byte(head), rest[1:]...), '}'), nil
}
