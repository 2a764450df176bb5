"""Does in an emulated project what gcloud would do, for the commands that check prints."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_hooks.sandbox.emulator.control import EmulatorControl


def perform(control: EmulatorControl, command: Sequence[str]) -> None:
    """Carry out a command. Fails for one that is not known here or names another project."""
    words = [word for word in command if not word.startswith("--")]
    flags = dict(word.removeprefix("--").split("=", 1) for word in command if "=" in word)
    assert words[0] == "gcloud"
    assert flags.pop("project", "demo") == "demo"
    match words[1:]:
        case ["projects", "add-iam-policy-binding", "demo"]:
            assert flags["condition"] == "None"
            control.project.grant(flags["role"], flags["member"])
        case ["iam", "service-accounts", "add-iam-policy-binding", email]:
            resource = f"serviceAccounts/{email}"
            control.project.grant(flags["role"], flags["member"], resource=resource)
        case ["iam", "service-accounts", "create", name]:
            control.project.put_service_account(f"{name}@demo.iam.gserviceaccount.com")
        case ["secrets", *rest]:
            _on_secrets(control, rest, flags)
        case ["services", "enable", name]:
            control.project.set_service(name, enabled=True)
        case ["compute", *rest]:
            _on_compute(control, rest, flags, command)
        case ["filestore", "instances", "create", name]:
            share, network = flags["file-share"].partition("=")[2], flags["network"]
            assert share.startswith("share,")
            control.project.put_filestore(
                flags["location"], name, network=network.removeprefix("name=")
            )
        case ["lustre", "instances", "create", name]:
            control.project.put_lustre(flags["location"], name, network=flags["network"])
        case ["beta", "quotas", "preferences", "create"]:
            metric = flags["quota-id"].removesuffix("-per-project-region").replace("-", "_")
            region = flags.get("dimensions", "region=").removeprefix("region=")
            control.set_quota(region, metric, float(flags["preferred-value"]))
        case _:
            raise AssertionError(f"unknown command: {command}")


def _on_secrets(control: EmulatorControl, words: list[str], flags: dict[str, str]) -> None:
    match words:
        case ["add-iam-policy-binding", name]:
            control.project.grant(flags["role"], flags["member"], resource=f"secrets/{name}")
        case ["create", name] | ["versions", "add", name]:
            assert flags["data-file"] == "/etc/munge/munge.key"
            control.project.put_secret(name, b"key")
        case ["versions", "enable", _version]:
            control.project.enable_secret_version(flags["secret"], int(_version))
        case _:
            raise AssertionError(f"unknown command: secrets {words}")


def _on_compute(
    control: EmulatorControl, words: list[str], flags: dict[str, str], command: Sequence[str]
) -> None:
    match words:
        case ["networks", "create", name]:
            control.project.put_network(
                name, auto_create_subnetworks=flags["subnet-mode"] == "auto"
            )
        case ["networks", "subnets", "create", name]:
            control.project.put_subnetwork(flags["region"], name, flags["network"])
        case ["images", "deprecate", name]:
            assert flags["state"] == "ACTIVE"
            control.project.put_image("demo", name)
        case ["reservations", "create" | "update", name]:
            machine_type = flags.get("machine-type", "a4-highgpu-8g")
            count = int(flags["vm-count"])
            assert words[1] == "update" or "--require-specific-reservation" in command
            control.project.put_reservation(flags["zone"], name, machine_type, count=count)
        case _:
            raise AssertionError(f"unknown command: compute {words}")
