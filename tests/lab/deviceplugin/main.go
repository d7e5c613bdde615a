// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)

// A device plugin without devices: it tells the kubelet of as many as the file -state says, one line "id [unhealthy]" each,
// and registers again whenever the kubelet has made its socket anew, unless -once.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	state string
}

func (p *plugin) devices() []*api.Device {
	text, err := os.ReadFile(p.state)
	if err != nil {
		log.Fatal(err)
	}
	var found []*api.Device
	for _, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		health := api.Healthy
		if len(words) > 1 {
			health = api.Unhealthy
		}
		found = append(found, &api.Device{ID: words[0], Health: health})
	}
	return found
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	told := ""
	for {
		text, _ := os.ReadFile(p.state)
		if string(text) != told {
			told = string(text)
			if err := stream.Send(&api.ListAndWatchResponse{Devices: p.devices()}); err != nil {
				return err
			}
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func (p *plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, one := range asked.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"LAB_DEVICES": strings.Join(one.DevicesIds, ",")}})
	}
	return answer, nil
}

func register(kubelet, name, resource string) error {
	connection, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(limit, &api.RegisterRequest{
		Version: api.Version, Endpoint: name, ResourceName: resource})
	return err
}

func main() {
	resource := flag.String("resource", "nvidia.com/gpu", "")
	state := flag.String("state", "/run/lab-devices", "")
	folder := flag.String("folder", "/var/lib/kubelet/device-plugins", "")
	once := flag.Bool("once", false, "do not register again with a new kubelet")
	flag.Parse()
	name := "lab-" + strings.ReplaceAll(*resource, "/", "-") + ".sock"
	kubelet := filepath.Join(*folder, "kubelet.sock")
	var server *grpc.Server
	var known os.FileInfo
	for ; ; time.Sleep(300 * time.Millisecond) {
		now, err := os.Stat(kubelet)
		if err != nil || (known != nil && (*once || os.SameFile(known, now) && known.ModTime() == now.ModTime())) {
			continue
		}
		if server != nil {
			server.Stop()
		}
		// A kubelet that starts empties the folder of its plugins' sockets.
		path := filepath.Join(*folder, name)
		os.Remove(path)
		listener, err := net.Listen("unix", path)
		if err != nil {
			log.Print(err)
			continue
		}
		server = grpc.NewServer()
		api.RegisterDevicePluginServer(server, &plugin{state: *state})
		go server.Serve(listener)
		if err := register(kubelet, name, *resource); err != nil {
			log.Print(err)
			continue
		}
		log.Printf("registered %s", *resource)
		known = now
	}
}
