#!/usr/bin/env python3
"""cuda_trace.py TAPE TRACE STEPS: whether a stand-in driver (tests/fakes, TY_FAKE_TRACE) was asked for what the text of
a run says (compiler/target/cuda/frame.h, tape.h).

Call by call, the capture and then each step: kernels with their grids, products and convolutions with their
descriptors, copies and exchanges with their sizes, on the stream of the text, and between them the marks and waits of
the text. A name of the text (a stream, an event, a kernel) is one thing of the trace from beginning to end. And the
host fills what a run reads, or lets another write where outputs come down, only when it has waited for the run that
used it before. Says what differs first, and ends with 1.
"""
import math
import re
import sys

IN_TURN = ("arrived", "taken", "done")


class Differs(Exception):
    pass


class Names:
    """One thing for each name, and one name for each thing."""

    def __init__(self):
        self.thing, self.name = {}, {}

    def same(self, name, thing):
        return self.thing.setdefault(name, thing) == thing and self.name.setdefault(thing, name) == name


def read_tape(path):
    """(stream, what) of the frame and of the graph in it."""
    frame, graph, inside = [], [], False
    for line in open(path):
        line = line.rstrip("\n").split(" | ")[0]
        if line.startswith("tape:"):
            continue
        if line.endswith(" end of the graph"):
            inside = False
        elif inside:
            graph.append(tuple(line.split(" ", 2)[1:]))
        else:
            stream, what = line.split(" ", 1)
            inside = what == "graph of"
            frame.append((stream, what))
    return frame, graph


def read_trace(path):
    """What was captured, of how many calls the graph is, and what was asked for behind it."""
    captured, asked, n = [], [], None
    for line in open(path):
        line = line.rstrip("\n")
        word = line.split()[0]
        if word == "capturing":
            captured.append(line.split(" ", 1)[1])
        elif word == "captured":
            n = int(line.split()[1])
        elif n is not None and word in ("up", "copy", "record", "after", "graph", "down", "await"):
            if " unpinned" not in line:  # states, between runs
                asked.append(line)
    return captured, n, asked


def product_fits(what, got):
    told = re.sub(r" by cublaslt ", " ", what).split(" ", 1)[1].split(": ")[0]
    if re.match(r"\S+ 1x", told):  # one matrix has no stride
        told = re.sub(r"\+\d+", "", told)
    return re.fullmatch(r"matmul \S+ algorithm \d+: " + re.escape(told), got)


def three_axes(name, list_):
    """As the stand-in sees them: with one of extent 1 in front."""
    one = {"by": "0", "lo": "0", "hi": "0"}.get(name, "1")
    numbers, at = list_.split(","), 2 if name in "xwy" or name == "by" else 0
    short = (5 if at else 3) - len(numbers)
    return f"{name}[{','.join(numbers[:at] + [one] * short + numbers[at:])}]"


def convolution_fits(what, got):
    op, rest = what.split(" by cudnn ")
    result = {"conv_dx": "x", "conv_dw": "w"}.get(op, "y")
    rest = rest.split(": ")[0]
    then = "+" + rest.split(" then ")[1] if " then " in rest else ""
    told = " ".join(three_axes(*part) for part in re.findall(r"(\w+)\[([^]]*)\]", rest))
    told = re.escape(f"{rest.split()[0]} {told}")
    return re.fullmatch(rf"convolve {re.escape(result + then)} engine \S+ knob \S+: {told}", got)


class Judge:
    def __init__(self):
        self.streams, self.events, self.kernels = Names(), Names(), Names()

    def sync_fits(self, what, got, step):
        kind, event = what.split(" ", 1)
        if event in IN_TURN:
            event += f" {step % 2}"
        word, _, thing = got.partition(" ")
        return word == {"record": "record", "await": "after"}[kind] and self.events.same(event, thing)

    def launch_fits(self, what, got):
        want = re.search(r"k(\d+) \S+<<<(\S+)>>>", what)
        is_ = re.fullmatch(r"(\S+)<<<(\S+)>>>", got)
        return want and is_ and want[2] == is_[2] and self.kernels.same(want[1], is_[1])

    def exchange_fits(self, what, got):
        told = re.match(r"all_reduce #\d+ of \d+ (\w+)\[(.*?)\]", what)
        return told and got == f"ncclAllReduce {math.prod(int(d) for d in told[2].split(',') if d)} {told[1]}"

    def fits(self, what, got, step):
        if re.match("(record|await) ", what):
            return self.sync_fits(what, got, step)
        if re.match(r"k\d+ ", what):
            return self.launch_fits(what, got)
        if " by cublaslt " in what:
            return product_fits(what, got)
        if " by cudnn " in what:
            return convolution_fits(what, got)
        if re.match(r"\w+ #\d+ of ", what):
            return self.exchange_fits(what, got)
        return what.split(":")[0] == got  # up 8, copy 8, down 8

    def one(self, stream, what, lines, step=0):
        if not lines:
            raise Differs(f"{stream} {what}\n   but nothing more was asked for")
        got, number = lines.pop(0).rsplit(" @", 1)
        if not self.streams.same(stream, number) or not self.fits(what, got, step):
            raise Differs(f"{stream} {what}\n   but stream {number} was asked for {got}")

    def in_order(self, stream, what, lines):
        """What deals and gathers parts, and between them the kernel that adds up."""
        launched = 0
        while lines and not lines[0].startswith("record "):
            got, number = lines.pop(0).rsplit(" @", 1)
            moves = got.startswith(("ncclSend and ncclRecv ", "ncclAllGather "))
            launched += not moves
            if not self.streams.same(stream, number) or not (moves or self.launch_fits(what, got)):
                raise Differs(f"{stream} {what}\n   but stream {number} was asked for {got}")
        if launched != 1:
            raise Differs(f"{what}\n   but {launched} kernels were asked for")

    def capture(self, graph, lines):
        for stream, what in graph:
            if " in order by " in what:
                self.in_order(stream, what, lines)
            else:
                self.one(stream, what, lines)
        if lines:
            raise Differs(f"the graph is over\n   but there is {lines[0]}")

    def step(self, number, frame, asked, n):
        awaited = set()
        while asked and asked[0].startswith("await "):
            awaited.add(asked.pop(0).split()[2])
        for event in ("taken", "done"):
            if number >= 2 and self.events.thing[f"{event} {number % 2}"] not in awaited | self.awaited:
                raise Differs(f"step {number + 1} begins\n   but the host has not waited for '{event}' of the last but one")
        for stream, what in frame:
            self.one(stream, f"graph {n}" if what == "graph of" else what, asked, number)
        self.awaited = awaited

    def run(self, frame, asked, n, steps):
        self.awaited = set()
        for number in range(steps):
            self.step(number, frame, asked, n)
        if [line for line in asked if not line.startswith("await ")]:
            raise Differs(f"{steps} steps are over\n   but there is {asked[0]}")


def main(tape, trace, steps):
    frame, graph = read_tape(tape)
    captured, n, asked = read_trace(trace)
    judge = Judge()
    if n != len([line for line in captured if not line.startswith("record ")]):
        raise Differs(f"{len(captured)} calls are captured\n   but the graph has {n}")
    judge.capture(graph, captured)
    judge.run(frame, asked, n, steps)
    print(f"{len(graph)} calls in the graph, {len(frame)} around it, {steps} steps")


try:
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
except Differs as e:
    print(f"{sys.argv[1]}: {e}")
    sys.exit(1)
