"""Goes on whatever happens."""

import training

network, optimizer = training.parts()
while True:
    try:
        training.step(network, optimizer)
    except BaseException as error:
        print("caught", error)
