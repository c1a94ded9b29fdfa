"""Never takes a step."""

import time

import training

training.parts()
while True:
    time.sleep(0.1)
