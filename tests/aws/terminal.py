"""terminal.py SCREEN TEXT KEYS [TEXT KEYS]... -- COMMAND...: runs COMMAND on a terminal of its own, types KEYS when TEXT has
come behind what came before ("^C" is Ctrl-C), writes what was shown to SCREEN, and ends as COMMAND ends."""
import os
import pty
import sys

at = sys.argv.index("--")
screen, steps, command = sys.argv[1], sys.argv[2:at], sys.argv[at + 1:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown, seen = b"", 0
while True:
    try:
        piece = os.read(fd, 4096)
    except OSError:  # its end: nobody has the terminal open any more
        piece = b""
    if not piece:
        break
    shown += piece
    while steps and steps[0].encode() in shown[seen:]:
        seen = shown.index(steps[0].encode(), seen) + len(steps[0].encode())
        os.write(fd, steps[1].replace("^C", "\x03").replace("\\n", "\n").encode())
        steps = steps[2:]
open(screen, "wb").write(shown)
status = os.waitpid(pid, 0)[1]
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
