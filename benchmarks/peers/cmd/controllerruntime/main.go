// Command controllerruntime is an injector as users of controller-runtime write one: typed pods,
// admission.PatchResponseFromRaw, nothing tuned.
//
// What it adds is read once, from a file: it knows no configs, and never asks the API server.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Injection is what every pod gets.
type Injection struct {
	InitContainers []corev1.Container `json:"initContainers"`
	Volumes        []corev1.Volume    `json:"volumes"`
	Labels         map[string]string  `json:"labels"`
	Annotations    map[string]string  `json:"annotations"`
}

// Injector is the webhook.
type Injector struct {
	decoder   admission.Decoder
	injection Injection
}

// Handle answers one review.
func (i *Injector) Handle(_ context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := i.decoder.Decode(request, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	for _, container := range pod.Spec.InitContainers {
		if container.Name == i.injection.InitContainers[0].Name {
			return admission.Allowed("it has the sidecar")
		}
	}
	pod.Spec.InitContainers = append(
		append([]corev1.Container{}, i.injection.InitContainers...), pod.Spec.InitContainers...,
	)
	pod.Spec.Volumes = append(pod.Spec.Volumes, i.injection.Volumes...)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	for key, value := range i.injection.Labels {
		pod.Labels[key] = value
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	for key, value := range i.injection.Annotations {
		pod.Annotations[key] = value
	}
	changed, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

func main() {
	port := flag.Int("port", 9443, "on 127.0.0.1")
	certificates := flag.String("cert-dir", "", "`folder` of tls.crt and tls.key")
	file := flag.String("injection", "", "JSON `file` of what every pod gets")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	content, err := os.ReadFile(*file)
	if err != nil {
		log.Fatal(err)
	}
	injector := &Injector{}
	if err := json.Unmarshal(content, &injector.injection); err != nil {
		log.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		log.Fatal(err)
	}
	injector.decoder = admission.NewDecoder(scheme)
	server := webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: *port, CertDir: *certificates,
	})
	server.Register("/mutate", &webhook.Admission{Handler: injector})
	if err := server.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}
