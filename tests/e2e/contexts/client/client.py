"""A small application: sends prompts to wherever OPENAI_BASE_URL says, or waits to be asked to.

client.py                     wait
client.py PROMPT              send it, print the answer; status 1 when there is none
client.py PROMPT WRONG_KEY    with this key instead of OPENAI_API_KEY
"""

import json
import os
import signal
import sys
import urllib.error
import urllib.request


def ask(prompt: str, key: str) -> str:
    """What the model answers."""
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": prompt}]}
    request = urllib.request.Request(
        f"{os.environ['OPENAI_BASE_URL']}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        content: str = json.load(response)["choices"][0]["message"]["content"]
        return content


def main(arguments: list[str]) -> int:
    """Ask or wait; return the exit status."""
    if not arguments:
        print("waiting", flush=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        signal.pause()
    prompt, key, *_ = [*arguments, os.environ.get("OPENAI_API_KEY", "")]
    try:
        print(ask(prompt, key))
    except urllib.error.HTTPError as error:
        print(f"HTTP {error.code}: {error.read().decode()}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
