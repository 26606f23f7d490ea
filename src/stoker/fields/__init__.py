"""What records hold beside the image, its class and its boxes: texts, numbers, arrays, masks, extra images.

========  =============================================  ==========================================
field     value in a record to build from                value in a sample
========  =============================================  ==========================================
Text      ``str``                                        ``str``
Bytes     ``bytes``                                      ``bytes``
Json      any value of JSON except ``None``              the same, tuples as lists
Int       a whole number of 64 bits, or ``bool``         ``int``
Float     a number that float32 can hold                 ``float``, rounded to float32
Label     an id from 0, or the name of a class;          ``int``
          -1 or NaN for none
Labels    any number of ids or names                     int64 array (N,)
Array     numbers of the shape and kind                  array of the dtype and shape
Mask      ids of classes, as many as the image has       uint8 or uint16 array (H, W)
          pixels: an array, a PIL image, a file
Image     an image as large as the first: an array, a    array (H, W, C), as from ``Sample.decode``
          PIL image, a file
Boxes     a list of boxes; see below                     ``Sample.boxes``
========  =============================================  ==========================================

A file is its bytes, its path or its URL. The field ``image``, or else the first `Image`, is the image of a record; the
field ``label``, or else the first `Label`, is its class. docs/reference/format.md says how these, the boxes and extra
fields are stored. No value may be missing, nor ``None`` but in `Text` (empty) and `Float` (NaN).
"""

from stoker.fields.base import Padded, Ragged, ValueField, box_column, class_column, read_feature
from stoker.fields.classes import Boxes, Label, Labels
from stoker.fields.records import (
    KINDS,
    Roles,
    as_typed,
    check_extra,
    encode_fields,
    field_of_image,
    from_json,
    given_value,
    infer,
    is_pil_image,
    named_image,
    roles,
    stored_values,
)
from stoker.fields.values import TRUTH_VALUES, Array, Bytes, Float, Image, Int, Json, Mask, Text, mask_pixels

__all__ = [
    "KINDS",
    "TRUTH_VALUES",
    "Array",
    "Boxes",
    "Bytes",
    "Float",
    "Image",
    "Int",
    "Json",
    "Label",
    "Labels",
    "Mask",
    "Padded",
    "Ragged",
    "Roles",
    "Text",
    "ValueField",
    "as_typed",
    "box_column",
    "check_extra",
    "class_column",
    "encode_fields",
    "field_of_image",
    "from_json",
    "given_value",
    "infer",
    "is_pil_image",
    "mask_pixels",
    "named_image",
    "read_feature",
    "roles",
    "stored_values",
]
