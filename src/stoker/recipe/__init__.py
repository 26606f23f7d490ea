"""How a build stores images: from the bytes of a source file to the bytes of the stored image."""

from __future__ import annotations

from stoker.recipe.geometry import turn, turn_box
from stoker.recipe.image_formats import (
    FORMATS,
    NATIVE_FORMATS,
    SNIFF_BYTES,
    QuietPillow,
    as_file,
    bits_of,
    by_decoder,
    decode_with_pillow,
    dimensions,
    encoder_versions,
    image_of,
    is_animated,
    is_turned,
    is_whole_png,
    missing_libraries,
    orientation,
    own_mode,
    pixels_of,
    sniff,
)
from stoker.recipe.recipe import (
    FILTERS,
    KEPT_FORMATS,
    MAX_PIXELS,
    Check,
    Encode,
    Filter,
    JpegEncode,
    PngEncode,
    RawEncode,
    Recipe,
    StoredSize,
    WebpEncode,
    parse_encode,
    parse_resize,
)
from stoker.recipe.stored_image import (
    StoredImage,
    Storing,
    check,
    convert,
    decode,
    decode_as_stored,
    decode_mask,
    encode_pixels,
    is_coloured,
    is_stored_mask,
    mask_colours,
    mask_ids,
    not_an_image,
    plain_storing,
    store_mask,
)
