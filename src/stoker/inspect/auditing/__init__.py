"""``stoker audit``: what the images of a dataset are like, and which of them should not be in it.

::

    measures       what is measured of one image
    measuring      that of all images, in a table, and in a file to resume from
    duplicates     which of them are the same image, exactly or nearly
    report         what the table says of images, splits and classes
    page_contents  the images that a page about it shows
"""
