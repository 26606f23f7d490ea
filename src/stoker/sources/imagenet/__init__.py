"""The label and box formats that come with ImageNet and its relatives.

- ``labels``: label maps, texts of classes, and classes of validation images without class folders
- ``classes``: the 1,000 classes of ILSVRC 2012, which come with Stoker
- ``boxes``: box formats: PASCAL VOC's XML in folders or a tar, a CSV, Tiny ImageNet's lists
- ``annotations``: which of these lies where in a source
- ``config_file``: ``ilsvrc.json``
"""
