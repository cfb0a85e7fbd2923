"""What a result says of the machine it was measured on, the name of its file, and writing it."""
import datetime
import json
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


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


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


def write(path, content, text):
    """PATH.json and PATH.md, each whole or not at all."""
    for end, told in ((".json", json.dumps(content, indent=1) + "\n"), (".md", text)):
        with open(path + end + ".part", "w", encoding="utf-8") as f:
            f.write(told)
        os.rename(path + end + ".part", path + end)


def save(folder, what, date, here, content, text):
    """FOLDER/DATE-MACHINE-WHAT.json, with date and machine before the content, and .md."""
    os.makedirs(folder, exist_ok=True)
    write(stem(folder, date, here, what), {"date": date, "machine": here, **content}, text)
