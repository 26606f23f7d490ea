"""The label and box formats that come with ImageNet and its relatives."""
