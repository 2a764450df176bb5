"""Guests are real processes: they boot, answer, stop in order, and leave nothing behind."""

from __future__ import annotations

import http.client
import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_hooks.sandbox.emulator import process_trees
from tests.emulator.http_api import GROUP, REQUESTS, ZONE_PATH, Api
from tests.emulator_process import EmulatorProcess
from tests.waiting import eventually

pytestmark = pytest.mark.slow

# Tells its metadata server and process id, starts a child in a session of its own, and waits.
GUEST = """
echo "host=$GCE_METADATA_HOST pid=$$ name=$SLURM_HOOKS_VM_NAME zone=$SLURM_HOOKS_VM_ZONE"
echo "home=${HOME-unset}"
trap 'echo stopping; exit 0' TERM
setsid sleep 600 &
echo "child=$!"
echo ready
while :; do sleep 0.05; done
"""
STUBBORN_GUEST = "trap '' TERM; echo \"pid=$$\"; echo ready; while :; do sleep 0.05; done"


def shell(script: str) -> str:
    """A boot command that runs a script."""
    return shlex.join(["/bin/sh", "-c", script])


@pytest.fixture
def emulator() -> Iterator[EmulatorProcess]:
    stop = shell("echo stop command of $SLURM_HOOKS_VM_NAME")
    with EmulatorProcess("--boot-command", shell(GUEST), "--stop-command", stop) as running:
        Api(running.url).make_group()
        yield running


def serial(emulator: EmulatorProcess, name: str, start: int = 0) -> str:
    """What a VM has written to its serial port."""
    path = f"{ZONE_PATH}/instances/{name}/serialPort?port=1&start={start}"
    body = Api(emulator.url).get(path).body
    return str(body.get("contents", ""))


def words_of(emulator: EmulatorProcess, name: str) -> dict[str, str]:
    """The KEY=VALUE words that a guest told once it was ready."""
    text = eventually(lambda: serial(emulator, name), lambda text: "ready" in text)
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def wait_until_dead(pid: int) -> None:
    """Wait for the end of a process."""
    eventually(lambda: is_alive(pid), lambda alive: not alive)


def ask_metadata(host: str, path: str, flavor: str = "Google") -> tuple[int, str]:
    """GET from a metadata server."""
    name, _, port = host.partition(":")
    connection = http.client.HTTPConnection(name, int(port), timeout=10)
    headers = {"Metadata-Flavor": flavor} if flavor else {}
    connection.request("GET", f"/computeMetadata/v1/{path}", headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_guest_knows_its_vm_and_nothing_of_our_environment(emulator: EmulatorProcess) -> None:
    Api(emulator.url).make_vms("n-0")
    words = words_of(emulator, "n-0")
    assert words["name"] == "n-0"
    assert words["zone"] == "us-central1-a"
    assert words["home"] == "unset"


def test_serial_port_is_read_in_parts(emulator: EmulatorProcess) -> None:
    Api(emulator.url).make_vms("n-0")
    words_of(emulator, "n-0")
    whole = serial(emulator, "n-0")
    assert serial(emulator, "n-0", start=10) == whole[10:]


def test_each_vm_has_a_metadata_server_of_its_own(emulator: EmulatorProcess) -> None:
    Api(emulator.url).make_vms("n-0", "n-1")
    hosts = [words_of(emulator, name)["host"] for name in ("n-0", "n-1")]
    assert len(set(hosts)) == 2
    for name, host in zip(("n-0", "n-1"), hosts, strict=True):
        assert ask_metadata(host, "instance/name") == (200, name)
        assert ask_metadata(host, "instance/attributes/k") == (200, "v")
        assert ask_metadata(host, "project/project-id") == (200, "demo")
        assert ask_metadata(host, "instance/name", flavor="")[0] == 403
        assert ask_metadata(host, "instance/nothing")[0] == 404


def test_metadata_change_wakes_a_waiting_reader(emulator: EmulatorProcess) -> None:
    api = Api(emulator.url)
    api.make_vms("n-0")
    host, _, port = words_of(emulator, "n-0")["host"].partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    path = "/computeMetadata/v1/instance/attributes/k"
    headers = {"Metadata-Flavor": "Google"}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    assert answer.read() == b"v"
    etag = answer.headers["ETag"]
    waiting = f"{path}?wait_for_change=true&last_etag={etag}&timeout_sec="
    connection.request("GET", f"{waiting}0", headers=headers)
    assert connection.getresponse().read() == b"v"

    connection.request("GET", f"{waiting}20", headers=headers)
    vm = f"{ZONE_PATH}/instances/n-0"
    metadata = api.get(vm).body["metadata"]
    for item in metadata["items"]:
        item["value"] = "new" if item["key"] == "k" else item["value"]
    api.do("POST", f"{vm}/setMetadata", metadata)
    assert connection.getresponse().read() == b"new"
    connection.close()


def test_deleted_vm_stops_in_order_and_takes_all_its_processes_along(
    emulator: EmulatorProcess, tmp_path: Path
) -> None:
    api = Api(emulator.url)
    api.make_vms("n-0")
    words = words_of(emulator, "n-0")
    pids = [int(words["pid"]), int(words["child"])]
    assert all(is_alive(pid) for pid in pids)
    api.do("POST", f"{GROUP}/deleteInstances", {"instances": ["zones/us-central1-a/instances/n-0"]})
    eventually(lambda: api.get(f"{ZONE_PATH}/instances/n-0").status, lambda status: status == 404)
    assert not any(is_alive(pid) for pid in pids)


def test_stop_command_comes_before_the_signal(tmp_path: Path) -> None:
    stop = shell("echo stop command of $SLURM_HOOKS_VM_NAME")
    arguments = ("--boot-command", shell(GUEST), "--stop-command", stop)
    with EmulatorProcess(*arguments, "--serial-directory", str(tmp_path)) as emulator:
        api = Api(emulator.url)
        api.make_group()
        api.make_vms("n-0")
        words_of(emulator, "n-0")
        emulator.control.terminate_instance("n-0")
        eventually(
            lambda: api.get(f"{ZONE_PATH}/instances/n-0").status, lambda status: status == 404
        )
        (log,) = tmp_path.glob("n-0-*.log")
        lines = log.read_text().splitlines()
    assert lines.index("stop command of n-0") < lines.index("stopping")


def test_stubborn_guest_is_killed_after_the_shutdown_window() -> None:
    with EmulatorProcess("--boot-command", shell(STUBBORN_GUEST)) as emulator:
        emulator.control.set_behaviour(shutdownWindowSeconds=0.3)
        api = Api(emulator.url)
        api.make_group()
        api.make_vms("n-0")
        pid = int(words_of(emulator, "n-0")["pid"])
        emulator.control.terminate_instance("n-0")
        eventually(
            lambda: api.get(f"{ZONE_PATH}/instances/n-0").status, lambda status: status == 404
        )
        assert not is_alive(pid)


def test_guest_that_ends_leaves_its_vm_running(emulator: EmulatorProcess) -> None:
    api = Api(emulator.url)
    api.make_vms("n-0")
    words = words_of(emulator, "n-0")
    emulator.control.kill_guest("n-0")
    eventually(lambda: is_alive(int(words["pid"])), lambda alive: not alive)
    assert api.get(f"{ZONE_PATH}/instances/n-0").body["status"] == "RUNNING"
    assert ask_metadata(words["host"], "instance/name") == (200, "n-0")


def test_vanished_vm_leaves_no_process(emulator: EmulatorProcess) -> None:
    api = Api(emulator.url)
    api.make_vms("n-0")
    words = words_of(emulator, "n-0")
    emulator.control.vanish_instance("n-0")
    assert api.get(f"{ZONE_PATH}/instances/n-0").status == 404
    for pid in (int(words["pid"]), int(words["child"])):
        wait_until_dead(pid)


def test_reset_starts_a_new_guest_on_the_same_serial_port(emulator: EmulatorProcess) -> None:
    api = Api(emulator.url)
    api.make_vms("n-0")
    first = words_of(emulator, "n-0")
    api.do("POST", f"{ZONE_PATH}/instances/n-0/reset")
    text = eventually(lambda: serial(emulator, "n-0"), lambda text: text.count("ready") == 2)
    assert text.count("pid=") == 2
    eventually(lambda: is_alive(int(first["pid"])), lambda alive: not alive)


def test_command_that_cannot_start_is_told_on_the_serial_port() -> None:
    with EmulatorProcess("--boot-command", "/no/such/program") as emulator:
        api = Api(emulator.url)
        api.make_group()
        api.make_vms("n-0")
        assert "/no/such/program" in serial(emulator, "n-0")
        assert api.get(f"{ZONE_PATH}/instances/n-0").body["status"] == "RUNNING"


@pytest.mark.parametrize("end", ["signal", "shutdown call"])
def test_emulator_takes_its_guests_along(emulator: EmulatorProcess, end: str) -> None:
    Api(emulator.url).make_vms("n-0", "n-1")
    words = [words_of(emulator, name) for name in ("n-0", "n-1")]
    if end == "signal":
        os.kill(emulator.pid, signal.SIGINT)
    else:
        emulator.control.shutdown()
    assert emulator.wait() == 0
    assert not any(is_alive(int(word[key])) for word in words for key in ("pid", "child"))


def test_no_guest_boots_while_the_emulator_ends() -> None:
    with EmulatorProcess("--boot-command", shell(STUBBORN_GUEST)) as emulator:
        emulator.control.set_behaviour(shutdownWindowSeconds=1.5)
        api = Api(emulator.url)
        api.make_group()
        api.make_vms("n-0")
        words_of(emulator, "n-0")
        emulator.control.set_latency(stagingSeconds=1)
        body = {"name": "r2", "instances": [{"name": "n-1"}]}
        api.do("POST", REQUESTS, body)
        path = f"{ZONE_PATH}/instances/n-1"
        eventually(lambda: api.get(path).body.get("status"), lambda status: status == "STAGING")
        emulator.control.shutdown()
        assert emulator.wait() == 0
    marks = frozenset({b"SLURM_HOOKS_VM_NAME=n-1"})
    assert process_trees.find(-1, marks) == set()


def test_killed_emulator_takes_its_guests_first_processes_along() -> None:
    with EmulatorProcess("--boot-command", "/bin/sleep 600") as emulator:
        api = Api(emulator.url)
        api.make_group()
        api.make_vms("n-0")
        (child,) = Path(f"/proc/{emulator.pid}/task/{emulator.pid}/children").read_text().split()
        os.kill(emulator.pid, signal.SIGKILL)
        emulator.wait()
        eventually(lambda: is_alive(int(child)), lambda alive: not alive)
