# docker build --build-arg VERSION=v1.2.3 --build-arg COMMIT=$(git rev-parse HEAD) -t ghcr.io/mcsps/rds-autopilot:v1.2.3 .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
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
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /rds-autopilot /rds-autopilot
USER 65532:65532
EXPOSE 8080 9090
ENTRYPOINT ["/rds-autopilot"]
CMD ["serve"]
