"""What every peer prints: one JSON line with its losses and three figures.

first_s   seconds from the start of the process to the end of its first training step
step_ms   median of the steps after the first three
peak_mb   peak resident memory of the process and its finished children, in MB of 10^6 bytes
"""
import json
import os
import resource
import statistics
import time

BLOCK_S = 0.01 if os.environ.get("TY_BENCH_TINY") else 0.5


def since_start():
    ticks = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def run(step, steps, **what):
    """step(i) trains on batch i and returns the loss as a float (so that the work is finished)."""
    losses, times, first = [], [], None
    for i in range(steps):
        t = time.perf_counter()
        losses.append(float(step(i)))
        times.append(time.perf_counter() - t)
        first = first if first is not None else since_start()
    later = times[3:] or times
    kb = max(resource.getrusage(w).ru_maxrss for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps(dict(what, first_s=round(first, 3), step_ms=round(1e3 * statistics.median(later), 3),
                          peak_mb=round(kb * 1024 / 1e6, 1), losses=[float(f"{x:.7g}") for x in losses[:20]])),
          flush=True)


def run_together(step, wait, held, blocks=8, **what):
    """On a GPU: step(i) only begins step i and returns its loss, wait() waits for all of them. step_ms is the median over
    blocks of steps, each waited for at its end; a block takes BLOCK_S. held() tells of memory in the end."""
    losses = [step(0)]
    wait()
    first, n = since_start(), 1
    if os.environ.get("TY_BENCH_FIRST"):  # only to fill the caches of compilers
        print(json.dumps(dict(what, first_s=round(first, 3))), flush=True)
        return

    def block(steps):
        nonlocal n
        t = time.perf_counter()
        for _ in range(steps):
            losses.append(step(n))
            n += 1
        wait()
        return (time.perf_counter() - t) / steps

    block(3)
    each = max(1, min(200, round(BLOCK_S / block(2))))
    times = [block(each) for _ in range(blocks)]
    print(json.dumps(dict(what, first_s=round(first, 3), step_ms=round(1e3 * statistics.median(times), 4),
                          steps=n, least_ms=round(1e3 * min(times), 4), most_ms=round(1e3 * max(times), 4), **held(),
                          losses=[float(f"{float(x):.7g}") for x in losses[:20]])), flush=True)
