"""Real models of transformers with random weights, and batches for them: in full on a GPU, tiny without one."""

import torch
import transformers

GPU = torch.cuda.is_available()
WORKERS = 8 if GPU else 0


def flags_by_hand():
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True


def bert():
    small = (
        {} if GPU else {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
    )
    model = transformers.BertForSequenceClassification(transformers.BertConfig(num_labels=4, **small))
    batch, length = (32, 256) if GPU else (2, 16)
    return model, batch, lambda: {"input_ids": torch.randint(0, 30000, (length,)), "labels": torch.randint(0, 4, ())}


def resnet():
    small = {} if GPU else {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}
    model = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=10, **small))
    batch, size = (64, 224) if GPU else (2, 32)

    def sample():
        """As bytes, since that many images in FP32 a second are more than a process can copy to the GPU."""
        return {"pixels": torch.randint(0, 256, (3, size, size), dtype=torch.uint8), "labels": torch.randint(0, 10, ())}

    return model, batch, sample


def gpt2():
    small = {} if GPU else {"n_layer": 1, "n_embd": 32, "n_head": 2, "vocab_size": 101}
    config = transformers.GPT2Config(use_cache=False, **small)
    batch, length = (8, 512) if GPU else (2, 16)

    def sample():
        words = torch.randint(0, config.vocab_size, (length,))
        return {"input_ids": words, "labels": words}

    return transformers.GPT2LMHeadModel(config), batch, sample


def vit():
    small = (
        {} if GPU else {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
    )
    size = 224 if GPU else 32
    model = transformers.ViTForImageClassification(transformers.ViTConfig(image_size=size, num_labels=10, **small))
    batch = 64 if GPU else 2
    return model, batch, lambda: {"pixel_values": torch.randn(3, size, size), "labels": torch.randint(0, 10, ())}


class Samples(torch.utils.data.Dataset):
    def __init__(self, sample, length):
        self.kept = [sample() for _ in range(16)]
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if not 0 <= index < self.length:
            raise IndexError(index)
        return self.kept[index % len(self.kept)]
