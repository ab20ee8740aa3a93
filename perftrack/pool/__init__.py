"""Workers: Ray, one Card a device, one fresh measuring child a round. The only place that imports Ray."""
