"""What a result says of the machine it was measured on, and the name of its file."""
import os
import platform
import re


def first_match(path, pattern):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            found = re.search(pattern, f.read(), re.M)
        return found.group(1).strip() if found else ""
    except OSError:
        return ""


def machine():
    return {"cpu": first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$") or platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
            "memory_mb": round(int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)") or 0) * 1024 / 1e6),
            "system": f"{platform.system()} {platform.release()}",
            "load_at_start": os.getloadavg()[0]}


def described(here):
    """One sentence."""
    return (f"{here['cpu']}, {here['cores']} cores, {here['memory_mb']} MB, {here['system']}; load at the start "
            f"{here['load_at_start']:.2f}.")


def stem(folder, date, here, what=""):
    """FOLDER/DATE-MACHINE[-WHAT], with a number behind it if there is such a result already."""
    name = re.sub(r"[^a-z0-9]+", "-", f"{here['cpu']} {here['cores']} cores".lower()).strip("-")
    name = os.path.join(folder, f"{date[:10]}-{name}" + (f"-{what}" if what else ""))
    path, n = name, 1
    while os.path.exists(path + ".json"):
        n += 1
        path = f"{name}-{n}"
    return path
