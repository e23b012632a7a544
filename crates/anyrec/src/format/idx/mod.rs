//! IDX, the MNIST format.
