"""What a profile chose, as arguments for a training framework: one module a framework, a plain function each.

Given is only what the profile departs from torch's default with, and only where the framework's own default is another. What
the profile leaves alone stays the framework's: false may also mean that nothing was measured. What the user set by one of
the framework's own variables stays too. torch's flags are none of these functions' business: `gputune.apply` has set them,
and no argument given here moves them.

Call them after `tuning.prepare`, which tells the kind of network. Compiling is left to `prepare` as well: Accelerate and
transformers turn TF32 on by themselves where they are told to compile.
"""
