"""How containers are started here, and what runs in them."""

USER = (12345, 12345)

LIMITS = ("--cpus=1.5", "--memory=2g", "--shm-size=64m", "--read-only", "--user=12345:12345")
"""A user without a name, a root that cannot be written, and half a CPU less than two. No container here has a
network.
"""

APPLIED = "import hashlib, os; print(hashlib.sha256(os.environ['GPUTUNE_APPLY'].encode()).hexdigest())"
"""What a program below `gputune apply` was given, in short."""

HANDLES = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))
print("ready", flush=True)
time.sleep(60)
"""
"""A program that ends itself on SIGTERM, with exit code 42."""
