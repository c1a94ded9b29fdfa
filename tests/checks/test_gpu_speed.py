"""What holds a GPU back: its clock, power, temperature and PCIe link, at rest and under a probe's load."""

from recorded import UNREAD, UNSUPPORTED, load, says, table

AT = "sudo nvidia-smi -i 00000000:00:06.0 "
ASK = "  # on the host, as root; changes the node; a lock may be deliberate: ask whoever runs the machine first"
SET, DEFAULT, MOST, NOW = (
    "ApplicationsClock:1", "DefaultApplicationsClock:1", "MaxClockInfo:1", "CurrentClocksEventReasons",
)  # fmt: skip


def under(*masks, device="cuda:0"):
    return [load(device, throttle_reasons=float(mask)) for mask in masks]


HELD = ("WARNING", "=a setting holds its clock below its maximum", f"={AT}-rgc; {AT}-rac{ASK}")
test_clock_lock = table(
    "clock_lock",
    {
        "older drivers name the reasons differently": says(
            "WARNING", gpu={NOW: {"unreadable": "NVML: Function Not Found"}, "CurrentClocksThrottleReasons": 0x2}
        ),
        "reasons that no call gives": says("UNKNOWN", gpu={NOW: {"unreadable": "NVML: Function Not Found"}}),
        "a low clock counts though the highest was not read": says("WARNING", gpu={SET: 900, MOST: UNREAD}),
    },
    {
        f"{clock} MHz, below the default": says(
            "WARNING",
            f"=its application clock is set to {clock} MHz; the default is 1980 MHz",
            f"={AT}-rac{ASK}",
            gpu={SET: clock},
        )
        for clock in [345, 1979]
    },
    {
        f"at rest, {clock} {usual}": says("OK", "at rest", gpu={SET: clock, DEFAULT: usual})
        for clock, usual in [(1980, 1980), (1095, 1095), (1410, 1095)]
    },
    {
        f"under load, {clock} {usual}": says(
            "OK", "=no setting holds its clock below 1980 MHz", gpu={SET: clock, DEFAULT: usual}, measured=under(0x4)
        )
        for clock, usual in [(1980, 1980), (1095, 1095), (1410, 1095)]
    },
    {f"held now: {mask}": says(*HELD, subject="GPU 0", gpu={NOW: mask}) for mask in [0x2, 0x6]},
    {f"held under load: {mask}": says(*HELD, subject="GPU 0", measured=under(mask)) for mask in [0x2, 0x6]},
    {
        f"held, and {call} was not read": says("WARNING", gpu={call: UNSUPPORTED}, measured=under(0x2))
        for call in [SET, DEFAULT, MOST, NOW]
    },
    {f"no setting: {mask}": says("OK", gpu={NOW: mask}, measured=under(mask)) for mask in [0x0, 0x1, 0x4, 0x40]},
)

LOOK = "^nvidia-smi -i 00000000:00:06.0 -q -d PERFORMANCE,TEMPERATURE,POWER  # "


def at_rest(answer):
    return dict.fromkeys(("CurrentClocksEventReasons", "CurrentClocksThrottleReasons"), answer)


test_throttling = table(
    "throttling",
    {
        "a fault at rest beside a load without one": says(
            "WARNING", "=slowed down at this moment by power brake", measured=under(0x4), gpu=at_rest(0x80)
        ),
        "faults of several measurements": says(
            "WARNING",
            "software thermal slowdown, hardware thermal slowdown, power brake",
            ("; cool it: fans, filters, the room's temperature; check the power supply",),
            measured=under(0x20, 0x4, 0x40, 0x80),
        ),
        "all that is normal is named": says(
            "OK", "only by idleness, software power cap, which is normal", measured=under(0x0, 0x4, 0x1)
        ),
        "a fault goes before an unknown reason": says("WARNING", measured=under(0x840)),
        "a load under which it was not read": says(
            "UNKNOWN", "=the probe could not read it under load", measured=[load()]
        ),
        "no load and no bits": says("UNKNOWN", gpu={"Brand": 5, **at_rest(UNREAD)}),
        "a load and no bits": says("OK", measured=under(0x0), gpu=at_rest(UNREAD)),
        "a consumer GPU may lack the bits": says("NOT_APPLICABLE", gpu={"Brand": 5, **at_rest(UNSUPPORTED)}),
        "a load and no such bits": says("OK", measured=under(0x0), gpu=at_rest(UNSUPPORTED)),
    },
    {
        f"under load: {mask} {name} {remedy}": says(
            "WARNING", f"=slowed down under load by {name}", (LOOK, remedy), subject="GPU 0", measured=under(mask)
        )
        for mask, name, remedy in [
            (mask | beside, name, remedy)
            for beside in (0x0, 0x4)
            for mask, name, remedy in (
                (0x08, "hardware slowdown", "too little power"),
                (0x20, "software thermal slowdown", "fans"),
                (0x40, "hardware thermal slowdown", "fans"),
                (0x80, "power brake", "power supply"),
            )
        ]
    },
    {
        f"at rest: {mask} {name}": says(
            "WARNING", f"=slowed down at this moment by {name}", LOOK, subject="GPU 0", gpu=at_rest(mask)
        )
        for mask, name in [
            (0x08, "hardware slowdown"),
            (0x21, "software thermal slowdown"),
            (0x41, "hardware thermal slowdown"),
            (0x80, "power brake"),
            (0x88, "hardware slowdown, power brake"),
        ]
    },
    {
        f"normal at rest, which says nothing of a load: {mask}": says(
            "NOT_APPLICABLE", "gputune probe", gpu=at_rest(mask)
        )
        for mask in [0x0, 0x1, 0x2, 0x4, 0x100, 0x800]
    },
    {
        f"normal under load: {mask} {name}": says(
            "OK", f"=under load limited only by {name}, which is normal", measured=under(mask)
        )
        for mask, name in [
            (0x1, "idleness"),
            (0x4, "software power cap"),
            (0x10, "sync boost"),
            (0x100, "display clocks"),
            (0x200, "board limit"),
            (0x400, "reliability voltage"),
        ]
    },
    {
        f"nothing but perhaps a setting: {masks}": says(
            "OK", "=nothing slowed it down under load", measured=under(*masks)
        )
        for masks in [(0x0,), (0x0, 0x0), (0x2,)]
    },
    {
        f"a reason that is not known: {mask} {told}": says(
            "UNKNOWN", f"({told})", subject="GPU 0", measured=under(mask)
        )
        for mask, told in [(0x800, "0x800"), (0x1004, "0x1000"), (0x1802, "0x1800")]
    },
    {
        f"a load elsewhere: {device}": says("NOT_APPLICABLE", measured=under(0x40, device=device))
        for device in ["cpu", "cuda:1"]
    },
)

LIMIT, USUAL, ENFORCED = "PowerManagementLimit", "PowerManagementDefaultLimit", "EnforcedPowerLimit"
test_power_limit = table(
    "power_limit",
    {
        "its own limit is told before the board's": says(
            "WARNING", "^its power limit is 500 W", gpu={LIMIT: 500_000, ENFORCED: 400_000}
        ),
        "a low limit counts though another was not read": says("WARNING", gpu={LIMIT: 500_000, ENFORCED: UNSUPPORTED}),
    },
    {
        f"below the default: {limit} {watts}": says(
            "WARNING",
            f"=its power limit is {watts} W; the default is 700 W",
            f"={AT}-pl 700{ASK.replace('lock', 'cap')}",
            subject="GPU 0",
            gpu={LIMIT: limit},
        )
        for limit, watts in [(500_000, "500"), (699_999, "699.999"), (0, "0")]
    },
    {
        f"not below the default: {limit} {usual}": says("OK", f"{limit / 1000:g} W", gpu={LIMIT: limit, USUAL: usual})
        for limit, usual in [(700_000, 700_000), (700_001, 700_000), (300_000, 250_000)]
    },
    {
        f"a lower limit of the board: {enforced}": says(
            "WARNING",
            f"=the board or the rack limits it to {enforced / 1000:g} W; the default is 700 W",
            "management controller",
            gpu={ENFORCED: enforced},
        )
        for enforced in [0, 699_999]
    },
    {
        f"a limit of the board that lowers nothing: {enforced}": says(
            "OK", "^its power limit is 700 W", gpu={ENFORCED: enforced}
        )
        for enforced in [700_000, 800_000]
    },
)

test_temperature = table(
    "temperature",
    {"the card's own threshold counts": says("OK", gpu={"Temperature:0": 84, "TemperatureThreshold:1": 100})},
    {f"{now}": says("OK", f"={now} C; it slows itself down at 89 C", gpu={"Temperature:0": now}) for now in [29, 83]},
    {
        f"{now}": says(
            "WARNING", f"={now} C; it slows itself down at 89 C", "cool the room", gpu={"Temperature:0": now}
        )
        for now in [84, 88, 89, 95]
    },
)


def generation(severity, message, *seen, device="cuda:0", remedy="", **gpu):
    measured = [load(device, pcie_generation=one) for one in seen]
    return says(severity, message, remedy, measured=measured, gpu=gpu)


NOT_READ = "=the probe could not read it under load"
test_pcie_generation = table(
    "pcie_generation",
    {
        "a low link at rest says nothing": generation("NOT_APPLICABLE", "gputune probe", CurrPcieLinkGeneration=1),
        "a load without conditions": says("UNKNOWN", NOT_READ, measured=[load()]),
        "a load with other conditions": says("UNKNOWN", NOT_READ, measured=under(0)),
    },
    {
        f"stays low: {seen}": generation(
            "WARNING", f"=PCIe generation {seen:.0f} of 5 under load", 1.0, seen, remedy=("firmware", "reseat")
        )
        for seen in [1.0, 3.0, 4.0]
    },
    {
        f"reached all: {most} {seen}": generation(
            "OK", f"=PCIe generation {most} under load", *seen, MaxPcieLinkGeneration=most
        )
        for most, *seen in [(5, 5.0), (5, 1.0, 5.0, 1.0), (3, 3.0)]
    },
    {f"elsewhere: {device}": generation("NOT_APPLICABLE", "", 1.0, device=device) for device in ["cpu", "cuda:1"]},
)


def lanes(severity, message, now, most, remedy="", **gpu):
    gpu = {"CurrPcieLinkWidth": now, "MaxPcieLinkWidth": most, **gpu}
    return says(severity, message, remedy, subject="GPU 0", gpu=gpu)


test_pcie_width = table(
    "pcie_width",
    {"a laptop's GPU rests": lanes("NOT_APPLICABLE", "", 8, 16, Name="NVIDIA GeForce RTX 4060 Laptop GPU")},
    {
        f"fewer than card and slot have: {now} {most}": lanes(
            "WARNING", f"={now} PCIe lanes of {most} are in use", now, most, "reseat"
        )
        for now, most in [(15, 16), (8, 16), (1, 16), (4, 8)]
    },
    {
        f"all: {now} {most}": lanes("OK", f"=all {now} PCIe lanes are in use", now, most)
        for now, most in [(16, 16), (8, 8)]
    },
)

test_persistence_mode = table(
    "persistence_mode",
    {
        "off": says(
            "WARNING",
            "^persistence mode is off",
            ("^sudo nvidia-smi -i 00000000:00:09.0 -pm 1  # on the host, as root; ", "nvidia-persistenced"),
            of=3,
            gpu={"PersistenceMode": 0},
        ),
        "a consumer GPU does without": says("NOT_APPLICABLE", gpu={"PersistenceMode": 0, "Brand": 5}),
    },
)
