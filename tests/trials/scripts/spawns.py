"""Has workers, a process of its own, and one in a session of its own that ignores what it is told."""

import multiprocessing
import subprocess
import sys
import time

import torch
import training

if __name__ == "__main__":
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", stubborn], start_new_session=True)
    multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,)).start()
    network, optimizer = training.parts()
    loader = torch.utils.data.DataLoader(torch.randn(100000, 64), batch_size=64, num_workers=2)
    for x in loader:
        optimizer.zero_grad()
        network(x).square().mean().backward()
        optimizer.step()
