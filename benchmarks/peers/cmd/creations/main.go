// Command creations creates pods through a real API server, in several namespaces by turns, and
// prints as JSON how long they took: for each namespace its turns, and all of them pooled.
//
// What differs between the namespaces is which webhook the API server asks. Turns are short and
// many, so that whatever else the machine does meets all of them alike.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"shield-operator.invalid/peers/load"
)

const patience = 35 * time.Second

type creator struct {
	server, token string
	clients       []*http.Client
	pod           []byte
	marked        string
}

func main() {
	server := flag.String("server", "", "the API server's `URL`")
	authority := flag.String("ca", "", "PEM `file` of the authority that it is trusted by")
	tokenFile := flag.String("token-file", "", "`file` of the token to show it")
	pod := flag.String("pod", "", "JSON `file` of the pod, without a name")
	namespaces := flag.String("namespaces", "", "where, separated by commas; NAME+ has to get the sidecar")
	rounds := flag.Int("rounds", 1, "how often each namespace has its turn")
	var bounds load.Bounds
	flag.IntVar(&bounds.Clients, "clients", 1, "how many at once, each with a connection of its own")
	flag.IntVar(&bounds.Requests, "requests", 20, "pods of one turn")
	flag.Float64Var(&bounds.Seconds, "seconds", 30, "end a turn after so many seconds")
	keep := flag.Bool("keep", false, "leave the pods there")
	spread := flag.Bool("spread", false, "one turn in which each pod goes to the next namespace")
	mark := flag.String("sidecar", "llm-shield-proxy", "`name` of the container that a pod has to get")
	flag.Parse()
	err := bounds.Check()
	var trust *http.Transport
	if err == nil {
		trust, err = transport(*authority)
	}
	var content, token []byte
	if err == nil {
		content, err = os.ReadFile(*pod)
	}
	if err == nil {
		token, err = os.ReadFile(*tokenFile)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "creations:", err)
		os.Exit(1)
	}
	c := &creator{
		server: *server, token: strings.TrimSpace(string(token)), pod: content,
		marked: fmt.Sprintf("%q:%q", "name", *mark),
	}
	for range bounds.Clients {
		c.clients = append(c.clients, &http.Client{Timeout: patience, Transport: trust.Clone()})
	}
	names := strings.Split(*namespaces, ",")
	turns := map[string][]load.Figures{}
	pooled := map[string]*load.Samples{}
	add := func(name string, samples *load.Samples) {
		turns[name] = append(turns[name], samples.Figures())
		if pooled[name] == nil {
			pooled[name] = &load.Samples{Failures: map[string]int{}}
		}
		pooled[name].Add(samples)
	}
	if *spread {
		add("all", c.turn(names, bounds))
	} else {
		for range *rounds {
			for _, name := range names {
				plain := strings.TrimSuffix(name, "+")
				add(plain, c.turn([]string{name}, bounds))
				if !*keep {
					if err := c.clear(plain); err != nil {
						fmt.Fprintln(os.Stderr, "creations:", err)
						os.Exit(1)
					}
				}
			}
		}
	}
	whole := map[string]load.Figures{}
	for name, samples := range pooled {
		whole[name] = samples.Figures()
	}
	found := map[string]any{"turns": turns, "pooled": whole}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		os.Exit(1)
	}
}

func transport(authority string) (*http.Transport, error) {
	trust, err := load.TrustOnly(authority)
	if err != nil {
		return nil, err
	}
	return &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}, nil
}

// turn creates pods in namespaces, the next one in the next.
func (c *creator) turn(names []string, bounds load.Bounds) *load.Samples {
	return load.Run(bounds, func(client int) func(int) error {
		var answer bytes.Buffer
		return func(number int) error {
			name, wanted := strings.CutSuffix(names[number%len(names)], "+")
			status, err := c.do(c.clients[client], http.MethodPost, name, c.pod, &answer)
			switch {
			case err != nil:
				return errors.New("no answer")
			case status != http.StatusCreated:
				return fmt.Errorf("HTTP %d: %.300s", status, answer.String())
			case wanted && !bytes.Contains(answer.Bytes(), []byte(c.marked)):
				return errors.New("a pod without its sidecar")
			case !wanted && bytes.Contains(answer.Bytes(), []byte(c.marked)):
				return errors.New("a pod with a sidecar")
			}
			return nil
		}
	})
}

// clear takes the pods away again, and waits until they are gone.
func (c *creator) clear(name string) error {
	var answer bytes.Buffer
	options := []byte(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`)
	status, err := c.do(c.clients[0], http.MethodDelete, name, options, &answer)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("the pods of %s cannot be deleted: %d %v %.300s", name, status, err, answer.String())
	}
	return nil
}

func (c *creator) do(
	client *http.Client, method, namespace string, body []byte, answer *bytes.Buffer,
) (int, error) {
	url := c.server + "/api/v1/namespaces/" + namespace + "/pods"
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	answer.Reset()
	_, err = io.Copy(answer, response.Body)
	return response.StatusCode, err
}
