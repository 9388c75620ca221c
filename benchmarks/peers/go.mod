module shield-operator.invalid/peers

go 1.26.0
