"""A stand-in for an LLM provider: answers every prompt with the prompt, and tells what it was sent.

POST /v1/chat/completions   an answer that repeats the last message
GET  /requests              what reached it: [{"path": …, "authorization": …, "body": …}, …]
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_seen: list[dict[str, Any]] = []


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Tell what was seen, on any path."""
        self._answer(_seen)

    def do_POST(self) -> None:
        """Record it, and answer as a provider of chat completions does."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        authorization = self.headers.get("Authorization")
        _seen.append({"path": self.path, "authorization": authorization, "body": body})
        message = {"role": "assistant", "content": f"You said: {body['messages'][-1]['content']}"}
        self._answer(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 0,
                "model": body.get("model", ""),
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        )

    def _answer(self, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("", 8080), Handler).serve_forever()
