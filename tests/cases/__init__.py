"""Cases: what has bitten users of GPU schedulers, each as a small cluster with the right answer."""
