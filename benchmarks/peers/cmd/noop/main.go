// Command noop is the floor: a webhook that allows every pod, and does nothing else.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net/http"

	admission "k8s.io/api/admission/v1"
)

func main() {
	address := flag.String("listen", "127.0.0.1:9443", "`address`")
	certificate := flag.String("cert", "", "PEM `file`")
	key := flag.String("key", "", "PEM `file`")
	flag.Parse()
	http.HandleFunc("POST /mutate", func(writer http.ResponseWriter, request *http.Request) {
		var review admission.AdmissionReview
		err := json.NewDecoder(request.Body).Decode(&review)
		if err != nil || review.Request == nil {
			http.Error(writer, "not an AdmissionReview", http.StatusBadRequest)
			return
		}
		review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		review.Request = nil
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(review)
	})
	log.Fatal(http.ListenAndServeTLS(*address, *certificate, *key, nil))
}
