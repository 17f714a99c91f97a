# Build: one static binary with pages, styles and migrations inside.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/tollgate ./cmd/tollgate

# Run: nothing but the binary and the certificates of public authorities; not root.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/tollgate /tollgate
USER 65534:65534
EXPOSE 8080
ENTRYPOINT ["/tollgate"]
CMD ["web"]
