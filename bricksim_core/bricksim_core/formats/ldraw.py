# SPDX-License-Identifier: Apache-2.0
from bricksim_core.errors import FormatError
def parse_ldraw(text, *, name, title, strict): raise FormatError(f"{name}: LDraw is not read yet")
def format_ldraw(structure): raise FormatError("LDraw is not written yet")
