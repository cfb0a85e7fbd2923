"""Writes cases.tar.xz beside this file, which tests/import/onnx_backend.sh runs. Needs onnx, numpy, ml_dtypes.

    python3 tests/golden/onnx/make.py
"""

import os

import case
import forms
import signals
import types_
import versions

for kind in (versions, types_, forms, signals):
    kind.all_cases()
case.write(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.tar.xz"))
