module holdfast.test/clients

go 1.21
