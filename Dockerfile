# docker build --build-arg VERSION=v1.2.3 --build-arg COMMIT=$(git rev-parse HEAD) -t ghcr.io/mcsps/rds-autopilot:v1.2.3 .
# For more than one platform: docker buildx build --platform linux/amd64,linux/arm64 …; Go compiles for each, nothing is emulated.
FROM --platform=$BUILDPLATFORM golang:1.26@sha256:3aff6657219a4d9c14e27fb1d8976c49c29fddb70ba835014f477e1c70636647 AS build
WORKDIR /src
# If the image's Go is older than the toolchain of go.mod, Go fetches that one.
ENV GOTOOLCHAIN=auto
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
ARG COMMIT=
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o /rds-autopilot ./cmd/rds-autopilot

# No shell, no package manager; with the roots of the public authorities and the time zones.
FROM gcr.io/distroless/static-debian12:nonroot@sha256:d093aa3e30dbadd3efe1310db061a14da60299baff8450a17fe0ccc514a16639
ARG VERSION=dev
ARG COMMIT=
LABEL org.opencontainers.image.title="rds-autopilot" \
      org.opencontainers.image.description="Grows databases on Open Telekom Cloud before they run out of storage, CPU or memory" \
      org.opencontainers.image.source="https://github.com/mcsps/rds-autopilot" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
# In the path, so that "kubectl exec … -- rds-autopilot doctor" works as in the released image.
COPY --from=build /rds-autopilot /usr/local/bin/rds-autopilot
USER 65532:65532
EXPOSE 8080 9090
ENTRYPOINT ["/usr/local/bin/rds-autopilot"]
CMD ["serve"]
