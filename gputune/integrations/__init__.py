"""A profile's choices as arguments for training frameworks: one module, with one function, for each framework.

Only choices that differ from torch's default are returned, and only where they also differ from the framework's own
default. A choice equal to torch's default may mean that nothing was measured, so the framework keeps its own value
there. A value that the user set through one of the framework's variables stays too. `gputune.apply` has set torch's
flags already, and no argument returned here changes them.

Call these functions after `tuning.prepare`, which recognises the kind of network. `prepare` also compiles: Accelerate
and transformers turn TF32 on by themselves when asked to compile.
"""
