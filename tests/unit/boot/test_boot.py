"""A boot as a whole: identity, GPUs, what Slurm is handed, and boots that fail."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from slurm_hooks.boot import keys, run
from slurm_hooks.boot.console import BootState, last_boot_step
from tests.unit.boot.vms import DATA, HOME, KEY, NODE, SCRATCH, SECRET, TOKEN, Reply, Vm

METADATA = "/computeMetadata/v1/instance"
PROGRAM = Path(__file__).resolve().parents[3] / "packaging" / "node" / "slurm-hooks-boot"


def test_boot_leads_from_metadata_to_the_options_of_slurmd(vm: Vm) -> None:
    vm.tell(keys.HOME, HOME)
    vm.tell(keys.STARTUP_SCRIPT, "echo hello")
    vm.tell(keys.GPUS, "1")
    vm.file("dev/nvidia0")
    assert vm.boot()
    key = vm.root / "etc/munge/munge.key"
    assert vm.steps == [
        f"identity done {NODE} compute",
        f"key done {key} written, from {SECRET}",
        "mount done /home 10.0.0.2:/home",
        "startup-script: hello",
        "startup-script done after 0 s",
        "gpus done 1 of 1",
        f"slurmd done --conf-server ctl-0,ctl-1:6820 -N {NODE}",
    ]
    assert vm.options == f'SLURMD_OPTIONS="--conf-server ctl-0,ctl-1:6820 -N {NODE}"\n'


def test_every_step_says_that_it_begins(vm: Vm) -> None:
    assert vm.boot()
    begun = [line for line in vm.console.splitlines() if line.endswith(" begins")]
    assert begun == [f"slurm-hooks-boot: {step} begins" for step in ("identity", "key", "slurmd")]


def test_boot_may_run_again(vm: Vm) -> None:
    vm.tell(keys.HOME, HOME)
    assert vm.boot()
    before = vm.options
    assert vm.boot()
    assert vm.options == before
    assert f"key done {vm.root}/etc/munge/munge.key is as before, from {SECRET}" in vm.steps
    assert "mount done /home is 10.0.0.2:/home already" in vm.steps
    assert len([call for call in vm.calls if call.startswith("mount")]) == 1


def test_boot_that_fails_leaves_no_options_of_an_earlier_one(vm: Vm) -> None:
    assert vm.boot()
    vm.tell(keys.STARTUP_SCRIPT, "exit 3")
    assert not vm.boot()
    assert vm.options == ""


def test_newer_slurmd_is_told_instance_id_and_type(vm: Vm) -> None:
    vm.add_program("slurmd", "echo slurm 23.11.4")
    assert vm.boot()
    assert f"-N {NODE} --instance-id 4711 --instance-type a3-ultragpu-8g" in vm.options


def test_image_with_a_slurm_conf_needs_no_controllers(vm: Vm) -> None:
    vm.tell(keys.CONTROLLERS, "")
    vm.file("etc/slurm/slurm.conf")
    assert vm.boot()
    assert vm.options == f'SLURMD_OPTIONS="-N {NODE}"\n'


@pytest.mark.parametrize(
    ("key", "value", "failure"),
    [
        (keys.CLUSTER, "", f"identity failed no {keys.CLUSTER} in the metadata"),
        (keys.POOL, "", f"identity failed no {keys.POOL} in the metadata"),
        (keys.POOL, "other", f"identity failed the VM's name {NODE} is not cl-other-INDEX"),
        (keys.CONTROLLERS, "ctl -f /etc/passwd", f"identity failed {keys.CONTROLLERS} cannot be"),
        (keys.AUTHENTICATION, "none", f"identity failed {keys.AUTHENTICATION} is 'none'"),
        (keys.ROLE, "boss", f"identity failed {keys.ROLE} is 'boss', not one of compute, login"),
        (keys.GPUS, "many", f"identity failed {keys.GPUS} is no whole number"),
        (keys.CONTROLLERS, "", "slurmd failed no controllers in the metadata, and no /etc/slurm"),
    ],
)
def test_metadata_that_no_node_can_have_fails_the_boot(
    vm: Vm, key: str, value: str, failure: str
) -> None:
    vm.tell(key, value)
    assert not vm.boot()
    assert vm.steps[-1].startswith(failure)
    assert vm.options == ""


def test_absent_metadata_server_fails_the_boot_in_time(vm: Vm) -> None:
    machine = vm.machine._replace(metadata_url="http://127.0.0.1:1/computeMetadata/v1")
    assert run.boot(machine) == 1
    waiting, failed = vm.steps
    assert waiting.startswith("identity waiting the metadata server 127.0.0.1:1 does not answer")
    assert failed.startswith("identity failed the metadata server 127.0.0.1:1 does not answer")


def test_another_server_in_its_place_is_no_metadata_server(vm: Vm) -> None:
    vm.servers.flavor = "Somebody's"
    assert not vm.boot()
    assert "is no metadata server" in vm.steps[-1]


def test_metadata_server_that_dribbles_does_not_hold_up_the_boot(vm: Vm) -> None:
    vm.servers.replies[f"{METADATA}/name"] = Reply(b"x" * 1000, slow=True)
    assert not vm.boot()
    assert vm.steps[-1].endswith("does not answer: timed out")


def test_missing_gpus_are_waited_for_and_then_told(vm: Vm) -> None:
    vm.tell(keys.GPUS, "2")
    vm.file("dev/nvidia0")
    vm.file("dev/nvidiactl")
    assert vm.boot()
    assert "gpus waiting 1 of 2" in vm.steps
    assert "gpus done 1 of 2 after 0.5 s: the node starts with what it has" in vm.steps
    assert vm.options != ""


def test_slurmd_that_does_not_run_fails_the_boot(vm: Vm) -> None:
    vm.add_program("slurmd", "echo no library; exit 127")
    assert not vm.boot()
    assert vm.steps[-1].endswith("slurmd -V says 'no library', status 127")
    vm.add_program("slurmd", "echo slurm 24.11.5; exit 1")
    assert not vm.boot()
    vm.remove_program("slurmd")
    assert not vm.boot()
    assert vm.steps[-1] == "slurmd failed slurmd is not installed in the image"


def test_failure_that_nobody_foresaw_is_told_without_its_text(
    vm: Vm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError(f"with {TOKEN}")

    monkeypatch.setattr(run, "place_key", fail)
    with pytest.raises(RuntimeError):
        vm.boot()
    assert vm.steps[-1] == "key failed unforeseen RuntimeError, see the journal"


def test_login_node_hands_its_controllers_to_sackd(vm: Vm) -> None:
    vm.tell(keys.ROLE, "login")
    vm.add_program("sackd", "")
    assert vm.boot()
    assert vm.steps[-1] == "clients done sackd --conf-server ctl-0,ctl-1:6820"
    handed = (vm.root / "run/slurm-hooks/sackd").read_text()
    assert handed == 'SACKD_OPTIONS="--conf-server ctl-0,ctl-1:6820"\n'
    assert vm.options == ""


def test_login_node_without_sackd_names_its_controllers_in_the_environment(vm: Vm) -> None:
    vm.tell(keys.ROLE, "login")
    environment = vm.file("etc/environment", "LANG=C.UTF-8\nSLURM_CONF_SERVER=old\n")
    assert vm.boot()
    assert environment.read_text() == "LANG=C.UTF-8\nSLURM_CONF_SERVER=ctl-0,ctl-1:6820\n"
    assert vm.options == ""


def test_login_node_without_munge_needs_sackd(vm: Vm) -> None:
    vm.tell(keys.ROLE, "login")
    vm.tell(keys.AUTHENTICATION, "slurm")
    assert not vm.boot()
    assert "needs sackd" in vm.steps[-1]


def test_key_and_token_are_in_no_output_and_in_no_argument(
    vm: Vm, capfd: pytest.CaptureFixture[str]
) -> None:
    for key, value in ((keys.HOME, HOME), (keys.FILESTORES, DATA), (keys.LUSTRES, SCRATCH)):
        vm.tell(key, value)
    vm.tell(keys.STARTUP_SCRIPT, "env; cat /proc/$$/cmdline /proc/$PPID/cmdline")
    vm.servers.refuse(f"/v1/{DATA}", 403, f"denied to {SECRET}")
    assert not vm.boot()
    vm.servers.answer(
        f"/v1/{DATA}", {"networks": [{"ipAddresses": ["10.0.0.3"]}], "fileShares": [{"name": "v"}]}
    )
    assert vm.boot()
    written = [path for path in vm.root.rglob("*") if path.is_file()]
    holders = [path.name for path in written if KEY[:20] in path.read_bytes()]
    assert holders == ["munge.key"]
    said = "".join([*vm.calls, vm.console, *capfd.readouterr()])
    assert "SECRET-" not in said
    assert any(token == f"Bearer {TOKEN}" for _, token in vm.servers.asked)


@pytest.mark.slow
def test_program_boots_the_vm_and_tells_it_on_standard_output(vm: Vm) -> None:
    answer = subprocess.run(vm.command, capture_output=True, text=True, timeout=30, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")
    step = last_boot_step(answer.stdout)
    assert step is not None
    assert (step.step, step.state) == ("slurmd", BootState.DONE)
    assert vm.options


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rot", "/"], "unknown option --rot"),
        (["--root"], "--root needs a value"),
        (["--metadata-url", "nowhere"], "nowhere is no URL"),
        (["--gpu-seconds", "-1"], "-1 is no number of seconds"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(arguments: list[str], said: str) -> None:
    answer = subprocess.run(
        (sys.executable, "-I", "-m", "slurm_hooks.boot.program", *arguments),
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[0].startswith(f"slurm-hooks-boot: {said}")
    assert "Traceback" not in answer.stderr


def test_metadata_that_is_no_json_fails_the_boot(vm: Vm) -> None:
    path = f"{METADATA}/service-accounts/default/token"
    vm.servers.replies[path] = Reply(json.dumps(["no token"]).encode())
    assert not vm.boot()
    assert vm.steps[-1] == "key failed the metadata server gives no token"
