"""What an array is: the type of its elements, which of them are selected, its memory on a device."""
