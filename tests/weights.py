"""Files of weights, written without a library."""

import json

import numpy as np

DTYPES = {"I64": "<i8", "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def write_weights(path, tensors, stored_as="F32", **changes):
    """Write arrays as a safetensors file, with changes of their descriptions."""
    header, content = {"__metadata__": {"format": "pt"}}, b""
    for name, array in tensors.items():
        array = np.asarray(array)
        if stored_as == "BF16":  # the upper half of a float32
            array = array.astype("<f4").view(np.uint32) >> 16
        data = array.astype(DTYPES[stored_as]).tobytes()
        offsets = [len(content), len(content) + len(data)]
        header[name] = {"dtype": stored_as, "shape": array.shape, "data_offsets": offsets} | changes
        content += data
    encoded = json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + content)
    return path
