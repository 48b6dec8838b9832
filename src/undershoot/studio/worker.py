"""A process that works for the studio: tasks come in as lines of JSON, and events and results go out as such.

It ends when nobody is there any more to read what it says.
"""

import contextlib
import json
import os
import queue
import sys
import threading
import traceback
from typing import Any, TextIO

from undershoot.errors import UndershootError, machine_gave_out


def main() -> None:
    """Work until standard input ends. Its argument: by how much it is nicer than who started it."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as channel:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints is no answer
        with contextlib.suppress(OSError, AttributeError):
            os.nice(int(sys.argv[1]))
        requests, stop = queue.Queue[dict[str, Any]](), threading.Event()
        threading.Thread(target=_listen, args=(requests, stop), daemon=True).start()
        from undershoot.studio.tasks import TASKS, warm

        warm()
        lock = threading.Lock()
        while True:
            request = requests.get()

            def tell(event: dict[str, Any]) -> None:
                _say(channel, lock, {"event": event})

            answer: dict[str, Any]
            try:
                answer = {"done": TASKS[request["task"]](request["arguments"], tell, stop.is_set)}
            except UndershootError as error:
                answer = {"error": str(error), "gave_out": machine_gave_out(error)}
            except MemoryError:
                answer = {"error": "there is not enough memory for this; ask for less", "gave_out": True}
            except Exception as error:
                traceback.print_exc()
                answer = {"crash": f"{type(error).__name__}: {error}"}
            _say(channel, lock, answer)


def _say(channel: TextIO, lock: threading.Lock, message: dict[str, Any]) -> None:
    with lock:
        channel.write(json.dumps(message) + "\n")
        channel.flush()


def _listen(requests: "queue.Queue[dict[str, Any]]", stop: threading.Event) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "stop" in message:
            stop.set()
        else:
            stop.clear()  # here, and not where the task begins: what comes after it is for it, however late that is
            requests.put(message)
    os._exit(0)  # whoever started us is gone, whatever we are doing


if __name__ == "__main__":
    main()
